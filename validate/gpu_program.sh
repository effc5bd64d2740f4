# For scripts that run the GPU programs, to be sourced: where they are, or how they come to be.
#
#   source validate/gpu_program.sh
#   programs=$(find_or_build_gpu_program DIR) || exit $?
#   "$programs/lockstep_ddp_cuda" --check ...
#
# Looked for in this order: bin/ (carried in a bundle), build/ (CMake's), DIR (built here before); the first that
# starts is taken. Where none does, validate/build_harness_here builds into DIR.

# Succeeds where the program in folder $1 starts: its libraries are there, its C library is new enough.
gpu_program_starts() {
  [ -x "$1/lockstep_ddp_cuda" ] && "$1/lockstep_ddp_cuda" --version >/dev/null 2>&1
}

# Prints the folder of the programs. Status 4, with one line on standard error, where there are none.
find_or_build_gpu_program() {
  local root folder reason
  root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
  for folder in "$root/bin" "$root/build" "$1"; do
    if gpu_program_starts "$folder"; then
      echo "$folder"
      return 0
    fi
  done
  if reason=$("$root/validate/build_harness_here" -o "$1" 2>&1 >/dev/null); then
    if gpu_program_starts "$1"; then
      echo "$1"
      return 0
    fi
    reason=$(why_it_does_not_start "$1")
  fi
  echo "no GPU program: $(why_it_does_not_start "$root/bin")$(echo "$reason" | tail -n 1)" >&2
  return 4
}

# What the program of folder $1 says where it is there and does not start; nothing where it is not.
why_it_does_not_start() {
  [ ! -x "$1/lockstep_ddp_cuda" ] || echo "$("$1/lockstep_ddp_cuda" --version 2>&1 >/dev/null | tail -n 1); "
}
