#pragma once

#include <optional>

namespace attest::certify::cli {

/// Replaces the standard output and error by streams that accept every write: a full disk, a closed
/// descriptor or a pipe that nobody reads must not end work whose files are still to be written.
/// Descriptors 0 to 2 that are closed are opened on nothing, so that no file of ours gets their
/// numbers. Signals of such writes are ignored.  [certify/cli/tests/streams_test]
void keep_streams();

/// Flushes the standard output. Returns errno of its first write that failed, if one did.
std::optional<int> output_error();

}  // namespace attest::certify::cli
