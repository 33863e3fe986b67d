// Every kernel of kernels.def.
#pragma once

#include "gpu/kernels/block_flash2.hpp"
#include "gpu/kernels/emulated_kernel.hpp"
#include "gpu/kernels/flash1.hpp"
#include "gpu/kernels/flash2.hpp"
#include "gpu/kernels/flash2_tensor_core.hpp"
#include "gpu/kernels/key_stationary.hpp"
#include "gpu/kernels/key_stationary_tensor_core.hpp"
#include "gpu/kernels/loss_large.hpp"
#include "gpu/kernels/loss_small.hpp"
#include "gpu/kernels/split_kv.hpp"
#include "gpu/kernels/square_tiled.hpp"
#include "gpu/kernels/square_tiled_bwd.hpp"
#include "gpu/kernels/stored_scores.hpp"
