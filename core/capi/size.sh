# Code size on a Cortex-M4F by group of functions. Part of the script "check".
step 'code size on Cortex-M4F'

# name|most bytes of flash|functions that a program of the group calls
groups='the responder|9984|loggap_serve
the responder without I/O|8192|loggap_mirror_init loggap_mirror_handle loggap_mirror_more loggap_mirror_next loggap_mirror_timed loggap_mirror_silence loggap_mirror_served
a complete assessment|73216|loggap_assess loggap_assess_options_default loggap_clock_calibrate
a complete assessment that looks ahead|73216|loggap_assess_look_ahead loggap_assess_options_default loggap_clock_calibrate
the fit of a sweep|22784|loggap_fit loggap_fit_options_default
the fit of a sweep that looks ahead|22784|loggap_fit_look_ahead loggap_fit_options_default
the streaming detector alone|12288|loggap_detector_init loggap_detector_push loggap_detector_finish
a profile encoded and decoded|10496|loggap_profile_encode loggap_profile_decode
predictions from a profile|8192|loggap_predict_message loggap_predict_prtt loggap_profile_loggops
closed forms of collectives|2816|loggap_loggops_message loggap_loggops_collective
simulation of patterns|82944|loggap_simulate_pattern loggap_pattern_options_default
simulation of schedules|84992|loggap_simulate_goal loggap_goal_survey
readers of GOAL text and binary|23552|loggap_goal_read loggap_goal_survey
reader of noise traces|2816|loggap_noise_read
control frames, both ways|9216|loggap_frame_parse loggap_frame_emit
texts of statuses and reasons|5888|loggap_status_text loggap_reason_text
the self-test|160768|loggap_selftest'

# flash FUNCTIONS…: bytes of a program that calls these and nothing else.
flash() {
  local roots=() name
  for name in "$@"; do roots+=(-u "$name"); done
  arm-none-eabi-ld --gc-sections --entry="$1" "${roots[@]}" -o "$work/group" "$archive" 2>/dev/null &&
    arm-none-eabi-size "$work/group" | awk 'NR == 2 { print $1 + $2 }'
}

within() { [ -n "$1" ] && [ "$1" -gt 0 ] && [ "$1" -le "$2" ] || { echo "$1 bytes of $2"; return 1; }; }

table=$work/table
printf '| functions | flash, bytes | limit of the check |\n|---|---:|---:|\n' >"$table"
while IFS='|' read -r name most functions; do
  # shellcheck disable=SC2086 # a list of functions
  bytes=$(flash $functions)
  check "$name: $bytes bytes of flash, at most $most" within "$bytes" "$most"
  printf '| %s | %s | %s |\n' "$name" "$bytes" "$most" >>"$table"
done <<<"$groups"

# The table stands in docs/embedded.md between two marks.
document=../../docs/embedded.md
if [ "$write" = --write ]; then
  sed -i -e "/<!-- code size: begin -->/,/<!-- code size: end -->/ {
    /<!-- code size: begin -->/ r $table
    /<!-- code size: /! d
  }" "$document"
fi
# The figures depend on the compiler's version: only the rows have to be there.
rows() { sed -n '/<!-- code size: begin -->/,/<!-- code size: end -->/p' "$document" | grep '^|' | cut -d'|' -f2,4; }
same_rows() { diff <(rows) <(cut -d'|' -f2,4 "$table"); }
check 'docs/embedded.md has these rows' same_rows
