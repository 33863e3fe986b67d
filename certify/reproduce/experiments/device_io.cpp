// Bytes and times of the same schedules on devices, from the record.
#include "certify/reproduce/claims/device_words.hpp"

namespace attest::certify {
namespace {

Findings run(const Laboratory&) {
  return device_words(parse_device_records(recorded_on_devices()));
}

}  // namespace

Experiment device_io_experiment() {
  return {"device_io", "what devices measured, on record", {}, run, 19};
}

}  // namespace attest::certify
