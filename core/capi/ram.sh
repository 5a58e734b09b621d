# RAM on a Cortex-M4F, as the C programs have printed it. Part of the script
# "check".
step 'RAM on Cortex-M4F'

# function|what it is given, as the C tests do|most bytes of RAM
functions='loggap_serve|messages of up to 448 bytes|2048
loggap_assess|as in `core/capi/examples/firmware.c`|24576
loggap_selftest||8192'

# figure LEVEL FUNCTION NAME: one of the numbers of "RAM of FUNCTION: lent 1,
# written 2, stack 3".
figure() { sed -n "s/^RAM of $2: .*\b$3 \([0-9]*\).*/\1/p" "$work/printed-$1"; }

table=$work/ram
printf '| function | lent | written | stack at `s` | at `z` | in all | limit |\n|---|---:|---:|---:|---:|---:|---:|\n' >"$table"
while IFS='|' read -r function given most; do
  lent=$(figure s "$function" lent) written=$(figure s "$function" written)
  at_s=$(figure s "$function" stack) at_z=$(figure z "$function" stack)
  all=$((lent + written + (at_s > at_z ? at_s : at_z)))
  check "$function: $all bytes of RAM, at most $most" within "$all" "$most"
  printf '| `%s`%s | %s | %s | %s | %s | %s | %s |\n' "$function" "${given:+, $given}" \
    "$lent" "$written" "$at_s" "$at_z" "$all" "$most" >>"$table"
done <<<"$functions"
put_table RAM "$table" 2,8
