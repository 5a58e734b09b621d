# Compiles and runs the C programs. Part of the script "check".
step 'C programs'

strict=(-std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude)
# Nothing of a C library, neither its headers nor its functions.
bare=(-ffreestanding -fno-builtin -fno-stack-protector -nostdlib)
sources=(tests/*.c examples/firmware.c)

compiled_for_host() {
  gcc "${strict[@]}" "${bare[@]}" -O1 -static -fno-pie -no-pie "${sources[@]}" "$host" -o "$work/host"
}

compiled_for_device() {
  arm-none-eabi-gcc "${strict[@]}" "${bare[@]}" -Os -mcpu=cortex-m4 -mthumb -mfloat-abi=hard \
    -mfpu=fpv4-sp-d16 -T tests/cortex-m.ld -Wl,--gc-sections "${sources[@]}" "$archive" \
    -o "$work/device"
}

with_threads() {
  gcc "${strict[@]}" -O2 -pthread tests/hosted/threads.c "$host" -o "$work/threads" &&
    timeout 60 "$work/threads"
}

# Library and programs with every access to memory checked, and every undefined
# operation of the C part. Rust's sanitizers need the nightly compiler.
sanitized() {
  local machine library
  machine=$(rustc -vV | sed -n 's/^host: //p')
  library=target/sanitized/$machine/release/libloggap.a
  RUSTFLAGS=-Zsanitizer=address cargo +nightly build --release --quiet --target "$machine" \
    --target-dir target/sanitized || return
  gcc "${strict[@]}" -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all \
    tests/hosted/machine.c $(ls tests/*.c | grep -v /start.c) examples/firmware.c "$library" \
    -o "$work/sanitized" && timeout 300 "$work/sanitized"
}

# What the programs print is kept: it says what RAM was needed.
on_device() {
  timeout 120 qemu-system-arm -machine mps2-an386 -display none -monitor none -serial none \
    -semihosting-config enable=on,target=native -kernel "$work/device" |& tee "$work/printed"
}

check 'the C programs for this machine, without a C library' compiled_for_host
check 'the C programs on this machine' timeout 120 "$work/host"
check 'responder and assessment on two threads' with_threads
if nightly; then
  check 'the C programs under the sanitizers of addresses and undefined operations' sanitized
else
  skip 1 'the C programs under sanitizers' 'could not install a nightly compiler'
fi
device 'the C programs for Cortex-M4F, without a C library' compiled_for_device
device 'the C programs on an emulated Cortex-M4F' on_device
