# Looks at what the library needs. Part of the script "check".
step 'symbols'

# Every function of the header.
exported() { grep -oE '^[a-z].*\bloggap_[a-z_]+\(' include/loggap.h | grep -oE 'loggap_[a-z_]+\($' |
  tr -d '(' | grep -v '^loggap_check_abi$' | sort -u; }

# link_all OUTPUT LINKER ARCHIVE: everything that the header names, and no more
# than it needs.
link_all() {
  local roots=() name
  for name in $(exported); do roots+=(-u "$name"); done
  "$2" --gc-sections --entry=loggap_version "${roots[@]}" --unresolved-symbols=ignore-all -o "$1" "$3"
}

# What a compiler may call, and what the program has to have therefore.
memory='memcpy|memmove|memset|memcmp|bcmp'

looks_right() {
  local linked=$1 nm=$2 names=$3 wrong name
  wrong=$("$nm" "$linked" | grep -iE 'rust_begin_unwind|panic|unwind|alloc|flt2dec|dec2flt|grisu|dragon|float_to_decimal')
  [ -z "$wrong" ] || { echo "not wanted: $wrong"; return 1; }
  "$nm" --defined-only "$linked" >"$work/names"
  for name in $names; do
    grep -q " T $name\$" "$work/names" || { echo "$name is missing"; return 1; }
  done
}

needs_nothing() {
  local undefined
  undefined=$(gcc -nostdlib -static -no-pie -Wl,--gc-sections -Wl,--entry=loggap_version \
    $(exported | sed 's/^/-Wl,-u,/') "$host" -o "$work/all" 2>&1 |
    grep -oE 'undefined reference to .*' | grep -oE '[A-Za-z_0-9]+.$' | tr -d "'\`" | sort -u |
    grep -vxE "$memory")
  [ -z "$undefined" ] || { echo "undefined: $undefined"; return 1; }
}

link_all "$work/host-all" ld "$host" 2>/dev/null
[ -n "$lacking" ] || link_all "$work/device-all" arm-none-eabi-ld "$archive" 2>/dev/null
count=$(exported | wc -l)
check "this machine: no undefined symbol but ${memory//|/, }" needs_nothing
check "this machine: $count functions, no allocator, no panic, no float formatting" \
  looks_right "$work/host-all" nm "$(exported)"
device "Cortex-M4F: $count functions, no allocator, no panic, no float formatting, nothing undefined" \
  looks_right "$work/device-all" arm-none-eabi-nm "$(exported)"
