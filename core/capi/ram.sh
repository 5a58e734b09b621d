# RAM on a Cortex-M4F, as the C programs have printed it. Part of the script
# "check".
step 'RAM on Cortex-M4F'

# function|what it is given, as the C tests do|most bytes of RAM
functions='loggap_serve|messages of up to 448 bytes|2048
loggap_assess|as in `core/capi/examples/firmware.c`|24576
loggap_selftest||8192'

# figure FUNCTION NAME: one of the numbers of "RAM of FUNCTION: lent 1,
# written 2, stack 3".
figure() { sed -n "s/^RAM of $1: .*\b$2 \([0-9]*\).*/\1/p" "$work/printed"; }

table=$work/ram
printf '| function | lent | written | stack | in all | limit |\n|---|---:|---:|---:|---:|---:|\n' >"$table"
while IFS='|' read -r function given most; do
  lent=$(figure "$function" lent) written=$(figure "$function" written) stack=$(figure "$function" stack)
  all=$((lent + written + stack))
  check "$function: $all bytes of RAM, at most $most" within "$all" "$most"
  printf '| `%s`%s | %s | %s | %s | %s | %s |\n' "$function" "${given:+, $given}" \
    "$lent" "$written" "$stack" "$all" "$most" >>"$table"
done <<<"$functions"
put_table RAM "$table" 2,7
