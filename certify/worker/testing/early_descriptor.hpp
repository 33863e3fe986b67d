#pragma once

namespace attest::certify::worker::testing {

/// A descriptor that the test has open, for every process it starts, when it starts a worker.
inline constexpr int kInherited = 200;

}  // namespace attest::certify::worker::testing
