#pragma once

#include <string>

#include "core/sparse_operands/sparse_operands.hpp"

/// Files of sparse Q, K and V in the safetensors format (core/files/safetensors.hpp): for each of
/// the three, under its letter and a point, three or four tensors of one axis,
///
///   row_offsets  I32 or I64, rows + 1 of them, from 0 on: row i has the entries row_offsets[i] and
///                on, up to row_offsets[i + 1]
///   columns      I32 or I64, ascending in every row
///   values       F32
///   shape        I32 or I64, may be left out: rows and columns
namespace attest {

/// Reads the operands of a problem. Without shapes the file does not say how many columns there
/// are.
///
/// Requires: a problem of require_sparse_problem whose sq and sk are the rows of the file, and
/// whose d and dv are the columns of its shapes. Else, and for a file that cannot be read, is cut
/// off, lacks a tensor or has another, of another dtype or shape, whose lists are no matrix of the
/// problem's d and dv or hold NaN or infinity, throws InvalidProblem with the file and the place.
/// [core/sparse_operands/sparse_operands_file_test "malformed files of sparse inputs"]
SparseOperands read_sparse_operands(const std::string& path, const Problem& problem);

/// The bytes of such a file, offsets and shapes in I64 and columns in I32.
/// [core/sparse_operands/sparse_operands_file_test "round trip of sparse inputs"]
std::string sparse_operands_safetensors(const SparseOperands& operands);

}  // namespace attest
