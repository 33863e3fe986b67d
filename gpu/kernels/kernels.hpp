// Every kernel of kernels.def.
#pragma once

#include "gpu/kernels/block_flash2/block_flash2.hpp"
#include "gpu/kernels/emulated/emulated_kernel.hpp"
#include "gpu/kernels/flash1/flash1.hpp"
#include "gpu/kernels/flash2/flash2.hpp"
#include "gpu/kernels/flash2/flash2_tensor_core.hpp"
#include "gpu/kernels/key_stationary/key_stationary.hpp"
#include "gpu/kernels/key_stationary/key_stationary_tensor_core.hpp"
#include "gpu/kernels/loss/loss_large.hpp"
#include "gpu/kernels/loss/loss_small.hpp"
#include "gpu/kernels/split_kv/split_kv.hpp"
#include "gpu/kernels/square_tiled/square_tiled.hpp"
#include "gpu/kernels/square_tiled/square_tiled_bwd.hpp"
#include "gpu/kernels/stored_scores/stored_scores.hpp"
