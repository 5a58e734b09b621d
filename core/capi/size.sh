# Code size on a Cortex-M4F by group of functions. Part of the script "check".
step 'code size on Cortex-M4F'

# name|most bytes of flash at opt-level s|at z|functions that a program of the group calls
groups='the responder|8192|9088|loggap_serve
the responder without I/O|7168|7936|loggap_mirror_init loggap_mirror_handle loggap_mirror_more loggap_mirror_next loggap_mirror_timed loggap_mirror_silence loggap_mirror_served
a complete assessment|49152|46976|loggap_assess loggap_assess_options_default loggap_clock_calibrate
a complete assessment that looks ahead|49152|47744|loggap_assess_look_ahead loggap_assess_options_default loggap_clock_calibrate
the fit of a sweep|17472|17472|loggap_fit loggap_fit_options_default
the fit of a sweep that looks ahead|18304|18944|loggap_fit_look_ahead loggap_fit_options_default
the streaming detector alone|9984|11136|loggap_detector_init loggap_detector_push loggap_detector_finish
a profile encoded and decoded|7104|8192|loggap_profile_encode loggap_profile_decode
predictions from a profile|8128|7744|loggap_predict_message loggap_predict_prtt loggap_profile_loggops
closed forms of collectives|2816|3264|loggap_loggops_message loggap_loggops_collective
simulation of patterns|81664|71104|loggap_simulate_pattern loggap_pattern_options_default
simulation of schedules|83456|72640|loggap_simulate_goal loggap_goal_survey
readers of GOAL text and binary|23296|21888|loggap_goal_read loggap_goal_survey
reader of noise traces|2496|3776|loggap_noise_read
control frames, both ways|8768|9408|loggap_frame_parse loggap_frame_emit
texts of statuses and reasons|5888|5824|loggap_status_text loggap_reason_text
the self-test|160768|137408|loggap_selftest'

# flash LEVEL FUNCTIONS…: bytes of a program that calls these and nothing else.
flash() {
  local archive roots=() name
  archive=$(archive "$1")
  shift
  for name in "$@"; do roots+=(-u "$name"); done
  arm-none-eabi-ld --gc-sections --entry="$1" "${roots[@]}" -o "$work/group" "$archive" 2>/dev/null &&
    arm-none-eabi-size "$work/group" | awk 'NR == 2 { print $1 + $2 }'
}

table=$work/table
printf '| functions | flash at `s`, bytes | limit | flash at `z`, bytes | limit |\n|---|---:|---:|---:|---:|\n' >"$table"
while IFS='|' read -r name most_s most_z functions; do
  # shellcheck disable=SC2086 # a list of functions
  at_s=$(flash s $functions) at_z=$(flash z $functions)
  check "$name: $at_s bytes of flash at s, at most $most_s" within "$at_s" "$most_s"
  check "$name: $at_z bytes of flash at z, at most $most_z" within "$at_z" "$most_z"
  printf '| %s | %s | %s | %s | %s |\n' "$name" "$at_s" "$most_s" "$at_z" "$most_z" >>"$table"
done <<<"$groups"
put_table 'code size' "$table" 2,4,6
