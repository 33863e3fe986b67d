#pragma once

#include <string>

#include "certify/worker/process/protocol.hpp"

namespace attest::certify::worker {

/// Hands the buffers of the call that the control names to an emulated device. Nothing where none
/// is loaded.
void begin_emulated_call(const Control& control);

/// Has a call that the device found wrong fail with the device's text, which it returns, and notes
/// one that it does not carry out.  [certify/worker/library/emulated_library_test]
std::string end_emulated_call(Control& control);

/// The same for a call that ends the process: the text becomes its last words.
void end_emulated_process(Control& control);

}  // namespace attest::certify::worker
