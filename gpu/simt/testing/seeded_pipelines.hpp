#pragma once

#include "gpu/simt/testing/pipeline_bugs.hpp"
#include "gpu/simt/testing/seeded_bugs.hpp"

namespace attest::simt {

/// The kernel of pipelined_product.cuh: sizes that its tiles do not divide, so that zeros are
/// multiplied; whole numbers so small that every order of the sums gives the same bits.
SeededRun run_pipeline(PipelineBug bug, const Emulation& emulation);

}  // namespace attest::simt
