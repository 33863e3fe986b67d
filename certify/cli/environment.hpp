#pragma once

namespace attest::certify::cli {

/// Throws InvalidProblem for an environment in which an OpenMP runtime ends the program by itself:
/// an OMP_NUM_THREADS that is no number, a /dev/shm where nothing may be written.
/// [certify/cli/tests/pipelines_test]
void require_environment();

}  // namespace attest::certify::cli
