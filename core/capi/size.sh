# Code size on a Cortex-M4F by group of functions. Part of the script "check".
step 'code size on Cortex-M4F'

# name|most bytes of flash|functions that a program of the group calls
groups='the responder|8192|loggap_serve
the responder without I/O|7296|loggap_responder_init loggap_responder_handle loggap_responder_more loggap_responder_next loggap_responder_timed loggap_responder_silence loggap_responder_served
a complete assessment|65536|loggap_assess loggap_assess_options_default loggap_clock_calibrate
a complete assessment that looks ahead|65536|loggap_assess_look_ahead loggap_assess_options_default loggap_clock_calibrate
the fit of a sweep|25088|loggap_fit loggap_fit_options_default
the fit of a sweep that looks ahead|22784|loggap_fit_look_ahead loggap_fit_options_default
the streaming detector alone|9984|loggap_detector_init loggap_detector_push loggap_detector_finish
a profile encoded and decoded|8192|loggap_profile_encode loggap_profile_decode
predictions from a profile|8640|loggap_predict_message loggap_predict_prtt loggap_profile_loggops
closed forms of collectives|2944|loggap_loggops_message loggap_loggops_collective
simulation of patterns|101888|loggap_simulate_pattern loggap_pattern_options_default
simulation of schedules|103808|loggap_simulate_goal loggap_goal_survey
readers of GOAL text and binary|25728|loggap_goal_read loggap_goal_survey
reader of noise traces|2496|loggap_noise_read
control frames, both ways|8896|loggap_frame_parse loggap_frame_emit
texts of statuses and reasons|5760|loggap_status_text loggap_reason_text
the self-test|184064|loggap_selftest'

# The limits hold for this compiler; another one may make up to a twentieth more.
pinned='rustc 1.96'
slack=0
if [[ $device_compiler != "$pinned"* ]]; then
  slack=5
  echo "limits are for $pinned, and this is $device_compiler: $slack% more is allowed"
fi

# flash FUNCTION…: bytes of a program that calls these and nothing else.
flash() {
  local roots=() name
  for name; do roots+=(-u "$name"); done
  arm-none-eabi-ld --gc-sections --entry="$1" "${roots[@]}" -o "$work/group" "$archive" 2>/dev/null &&
    arm-none-eabi-size "$work/group" | awk 'NR == 2 { print $1 + $2 }'
}

table=$work/table
printf '| functions | flash, bytes | limit |\n|---|---:|---:|\n' >"$table"
while IFS='|' read -r name most functions; do
  # shellcheck disable=SC2086 # a list of functions
  bytes=$(flash $functions)
  allowed=$((most + most * slack / 100))
  check "$name: $bytes bytes of flash, at most $allowed" within "$bytes" "$allowed"
  printf '| %s | %s | %s |\n' "$name" "$bytes" "$most" >>"$table"
done <<<"$groups"
put_table 'code size' "$table" 2,4
