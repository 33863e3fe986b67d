#pragma once

#include <optional>
#include <string>

#include "core/abi/attest_kernel.h"
#include "proptest/judge/run.hpp"

namespace attest::proptest {

/// A problem of the same shape that differs in one field.
struct FieldChange {
  std::string field;      // "scale", "bits of the mask"
  Problem problem;        // the case's, changed
  bool in_values;         // the exact results are others; false: only where the outputs lie
  LseRequest asks_first;  // whether the case's own calls ask for LSE; the changed one does
};

/// One change of a case's problem that the kernel claims, by the seed: of scale, softcap, slopes,
/// window, alignment, key lengths, packed lengths, bits of the mask, strides, or whether LSE is
/// asked for. Seeds rank the fields, so that a simpler case of a seed keeps its field where that
/// applies. Nothing where none applies. [proptest/laws/trials/field_changes_test]
std::optional<FieldChange> field_change(const attest_description& description, const Case& c);

}  // namespace attest::proptest
