/* Runs all parts and prints the closing count. */
#include "bench.h"

int bench_main(void);
int bench_main(void) {
  test_errors();
  test_frames();
  test_script();
  test_assessment();
  test_fitting();
  test_schedules();
  test_firmware();
  put_number(passed);
  put_text(" passed, ");
  put_number(failed);
  put_text(" failed\n");
  return failed == 0 && passed > 0 ? 0 : 1;
}
