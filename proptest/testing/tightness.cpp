#include "proptest/testing/tightness.hpp"

namespace attest::proptest {

const std::vector<Tightness>& medians_of_document() {
  static const std::vector<Tightness> table{
      {Values::normal, DType::f32, {539.3, 0, 232, 203, 202}},
      {Values::normal, DType::bf16, {21.8, 0, 15, 15, 16}},
      {Values::normal, DType::f16, {24, 0, 16, 16, 17}},
      {Values::x4, DType::f32, {201.2, 0, 201, 155, 146}},
      {Values::x4, DType::bf16, {8.8, 0, 5, 7, 7}},
      {Values::x4, DType::f16, {11.2, 0, 6, 8, 9}},
      {Values::x10, DType::f32, {173.7, 0, 229, 148, 129}},
      {Values::x10, DType::bf16, {7.8, 0, 2, 5, 6}},
      {Values::x10, DType::f16, {9.3, 0, 3, 7, 13}},
      {Values::all_positive, DType::f32, {91.5, 0, 163, 252, 223}},
      {Values::all_positive, DType::bf16, {5.6, 0, 3, 19, 21}},
      {Values::all_positive, DType::f16, {5.5, 0, 3, 22, 22}},
      {Values::one_hot, DType::f32, {205.2, 0, 0, 197, 297}},
      {Values::one_hot, DType::bf16, {73.4, 0, 31, 0, 7}},
      {Values::one_hot, DType::f16, {32.5, 0, 0, 174, 22}},
      {Values::uniform, DType::f32, {1068.7, 0, 277, 226, 198}},
      {Values::uniform, DType::bf16, {32.6, 0, 17, 17, 24}},
      {Values::uniform, DType::f16, {36.1, 0, 18, 12, 20}},
      {Values::cancelling, DType::f32, {664.8, 0, 329, 213, 205}},
      {Values::cancelling, DType::bf16, {26.9, 0, 16, 15, 16}},
      {Values::cancelling, DType::f16, {29.7, 0, 19, 16, 17}},
      {Values::rising_maximum, DType::f32, {163.9, 0, 338, 49, 50}},
      {Values::rising_maximum, DType::bf16, {9.2, 0, 2, 7, 7}},
      {Values::rising_maximum, DType::f16, {11.8, 0, 0, 0, 0}},
      {Values::halves, DType::f32, {269.7, 0, 285, 204, 197}},
      {Values::halves, DType::bf16, {26.2, 0, 16, 15, 16}},
      {Values::halves, DType::f16, {29.4, 0, 18, 17, 17}},
      {Values::ties, DType::f32, {1036.2, 0, 377, 289, 259}},
      {Values::ties, DType::bf16, {27.2, 0, 17, 17, 18}},
      {Values::ties, DType::f16, {31.6, 0, 19, 18, 20}},
      {Values::logits_1e4, DType::f32, {259.2, 0, 0, 0, 0}},
      {Values::logits_1e4, DType::bf16, {666.5, 0, 0, 0, 0}},
      {Values::logits_1e4, DType::f16, {266.6, 0, 0, 0, 0}},
      {Values::duplicate_keys, DType::f32, {834.4, 0, 301, 209, 217}},
      {Values::duplicate_keys, DType::bf16, {28, 0, 16, 15, 17}},
      {Values::duplicate_keys, DType::f16, {31.9, 0, 18, 17, 18}},
      {Values::indicator, DType::f32, {363.5, 0, 214, 182, 203}},
      {Values::indicator, DType::bf16, {6.1, 0, 14, 15, 16}},
      {Values::indicator, DType::f16, {7, 0, 15, 16, 17}},
      {Values::ones, DType::f32, {86.4, 0, 0, 0, 0}},
      {Values::positive_v, DType::f32, {95.8, 0, 235, 203, 205}},
      {Values::positive_v, DType::bf16, {5.7, 0, 9, 14, 16}},
      {Values::positive_v, DType::f16, {5.9, 0, 10, 14, 17}},
  };
  return table;
}

const std::vector<Tightness>& first_medians() {
  static const std::vector<Tightness> table{
      {Values::normal, DType::f32, {391.3, 148, 193.6, 211.5, 147.9}},
      {Values::normal, DType::bf16, {4.7, 175.3, 4.8, 4.7, 4.3}},
      {Values::normal, DType::f16, {6.5, 183.6, 5.7, 6, 5.1}},
      {Values::x4, DType::f32, {195.8, 127.6, 195.4, 182.3, 208.7}},
      {Values::x4, DType::bf16, {4, 177.9, 2.7, 4.6, 5}},
      {Values::x4, DType::f16, {4.8, 110, 3.6, 5.5, 5.5}},
      {Values::x10, DType::f32, {154, 100.8, 174.1, 120, 121.8}},
      {Values::x10, DType::bf16, {4.3, 135.3, 2.4, 3.4, 4.1}},
      {Values::x10, DType::f16, {4.7, 88.6, 4, 0, 0}},
      {Values::all_positive, DType::f32, {110.1, 88.2, 169.2, 125.2, 54.2}},
      {Values::all_positive, DType::bf16, {3.9, 108.8, 1.6, 3.8, 5}},
      {Values::all_positive, DType::f16, {4, 102.1, 2.5, 6.6, 5.7}},
      {Values::one_hot, DType::f32, {0, 192.5, 0, 0, 0}},
      {Values::one_hot, DType::bf16, {0, 107.8, 0, 0, 0}},
      {Values::one_hot, DType::f16, {0, 83.5, 0, 0, 0}},
      {Values::uniform, DType::f32, {469.5, 113.6, 149.3, 85, 25.6}},
      {Values::uniform, DType::bf16, {4.6, 129.9, 5.5, 4.5, 4.1}},
      {Values::uniform, DType::f16, {5.9, 137.2, 6.2, 0, 4.5}},
      {Values::cancelling, DType::f32, {380.3, 154.9, 251, 171.3, 130.5}},
      {Values::cancelling, DType::bf16, {5.5, 126.5, 4.5, 4.5, 4.4}},
      {Values::cancelling, DType::f16, {6.9, 117.3, 5.6, 5.7, 5.3}},
      {Values::rising_maximum, DType::f32, {189.8, 75.1, 227.5, 0, 0}},
      {Values::rising_maximum, DType::bf16, {7.9, 134.2, 2.3, 0, 0}},
      {Values::rising_maximum, DType::f16, {7.5, 115.7, 4.9, 0, 0}},
      {Values::halves, DType::f32, {278.6, 158.7, 249.3, 131.8, 94}},
      {Values::halves, DType::bf16, {4.8, 164.9, 4.1, 4.7, 4.3}},
      {Values::halves, DType::f16, {6.3, 144.9, 4.9, 5.9, 5.1}},
      {Values::ties, DType::f32, {636.3, 198.5, 253.8, 339.6, 243.3}},
      {Values::ties, DType::bf16, {4.6, 149.1, 5.5, 4.4, 4}},
      {Values::ties, DType::f16, {5.7, 147.3, 6.6, 5.4, 4.7}},
      {Values::logits_1e4, DType::f32, {0, 99.6, 297.3, 0, 0}},
      {Values::logits_1e4, DType::bf16, {0, 174.1, 0, 0, 0}},
      {Values::logits_1e4, DType::f16, {0, 146.1, 0, 0, 0}},
      {Values::duplicate_keys, DType::f32, {820.6, 165.6, 182, 220.6, 151.2}},
      {Values::duplicate_keys, DType::bf16, {4.7, 184.1, 3.6, 4.6, 4}},
      {Values::duplicate_keys, DType::f16, {7, 151.3, 4.5, 6.2, 5}},
      {Values::indicator, DType::f32, {234.5, 127.9, 153.3, 75, 73.5}},
      {Values::indicator, DType::bf16, {3.6, 164.9, 5.3, 4.5, 4.1}},
      {Values::indicator, DType::f16, {3.9, 151.7, 6.3, 6.1, 4.8}},
      {Values::ones, DType::f32, {0, 149.8, 800, 260.9, 106.3}},
      {Values::ones, DType::bf16, {0, 154.6, 0, 0, 4.5}},
      {Values::ones, DType::f16, {0, 157.1, 0, 0, 5.4}},
      {Values::positive_v, DType::f32, {124.7, 148, 218.3, 225.1, 147.9}},
      {Values::positive_v, DType::bf16, {3.8, 175.3, 3.3, 4, 4.3}},
      {Values::positive_v, DType::f16, {4, 183.6, 4.2, 5.8, 5.1}},
      {Values::negative_logits, DType::f32, {195.5, 88.1, 792.1, 113.6, 141.8}},
      {Values::negative_logits, DType::bf16, {5.8, 116, 3, 10.2, 8.6}},
      {Values::negative_logits, DType::f16, {12.1, 79.4, 6.2, 20.3, 0}},
      {Values::maximum_last, DType::f32, {324.2, 270.6, 137.5, 126.4, 102.1}},
      {Values::maximum_last, DType::bf16, {6.6, 157.2, 6, 4.5, 4.1}},
      {Values::maximum_last, DType::f16, {8.5, 106.6, 6, 0, 0}},
      {Values::denormals, DType::f32, {0, 149.6, 235.8, 66.5, 75.7}},
      {Values::denormals, DType::bf16, {0, 156.4, 0, 0, 4.8}},
      {Values::denormals, DType::f16, {0, 163.2, 0, 0, 5.5}},
      {Values::integers, DType::f32, {250.4, 161.1, 243.5, 282.7, 244.6}},
      {Values::integers, DType::bf16, {4.3, 161.1, 2, 3.8, 4.8}},
      {Values::integers, DType::f16, {4.9, 162.7, 2.8, 0, 0}},
  };
  return table;
}

const std::vector<Tightness>& first_medians_of_delta() {
  static const std::vector<Tightness> table{
      {Values::normal, DType::f32, {0, 0, 180.6, 175.9, 0}},
      {Values::normal, DType::bf16, {0, 0, 4.4, 3.2, 0}},
      {Values::normal, DType::f16, {0, 0, 5.3, 4.5, 0}},
      {Values::x4, DType::f32, {0, 0, 386.5, 243.9, 0}},
      {Values::x4, DType::bf16, {0, 0, 6.9, 3.6, 0}},
      {Values::x4, DType::f16, {0, 0, 11.9, 5.8, 0}},
      {Values::x10, DType::f32, {0, 0, 376.8, 237.3, 0}},
      {Values::x10, DType::bf16, {0, 0, 8, 4.3, 0}},
      {Values::x10, DType::f16, {0, 0, 12.7, 0, 0}},
      {Values::all_positive, DType::f32, {0, 0, 108.6, 160, 0}},
      {Values::all_positive, DType::bf16, {0, 0, 3.7, 3.6, 0}},
      {Values::all_positive, DType::f16, {0, 0, 5.1, 5, 0}},
      {Values::one_hot, DType::f32, {0, 0, 508.3, 0, 0}},
      {Values::one_hot, DType::bf16, {0, 0, 19.5, 0, 0}},
      {Values::one_hot, DType::f16, {0, 0, 0, 0, 0}},
      {Values::uniform, DType::f32, {0, 0, 183.7, 266.5, 0}},
      {Values::uniform, DType::bf16, {0, 0, 3.3, 4.4, 0}},
      {Values::uniform, DType::f16, {0, 0, 4.1, 0, 0}},
      {Values::cancelling, DType::f32, {0, 0, 239.9, 219.3, 0}},
      {Values::cancelling, DType::bf16, {0, 0, 4, 4.7, 0}},
      {Values::cancelling, DType::f16, {0, 0, 5.9, 6.8, 0}},
      {Values::rising_maximum, DType::f32, {0, 0, 209, 83.8, 0}},
      {Values::rising_maximum, DType::bf16, {0, 0, 57.5, 7.3, 0}},
      {Values::rising_maximum, DType::f16, {0, 0, 59.4, 0, 0}},
      {Values::halves, DType::f32, {0, 0, 310.9, 341.2, 0}},
      {Values::halves, DType::bf16, {0, 0, 7.1, 15.3, 0}},
      {Values::halves, DType::f16, {0, 0, 10, 16.7, 0}},
      {Values::ties, DType::f32, {0, 0, 328.1, 391.9, 0}},
      {Values::ties, DType::bf16, {0, 0, 4.2, 7.4, 0}},
      {Values::ties, DType::f16, {0, 0, 5.3, 8.3, 0}},
      {Values::logits_1e4, DType::f32, {0, 0, 1306, 0, 0}},
      {Values::logits_1e4, DType::bf16, {0, 0, 0, 0, 0}},
      {Values::logits_1e4, DType::f16, {0, 0, 0, 0, 0}},
      {Values::duplicate_keys, DType::f32, {0, 0, 326.4, 281.2, 0}},
      {Values::duplicate_keys, DType::bf16, {0, 0, 4.6, 3.5, 0}},
      {Values::duplicate_keys, DType::f16, {0, 0, 7.1, 4.7, 0}},
      {Values::indicator, DType::f32, {0, 0, 163.2, 207.4, 0}},
      {Values::indicator, DType::bf16, {0, 0, 5, 3.8, 0}},
      {Values::indicator, DType::f16, {0, 0, 6.6, 4.9, 0}},
      {Values::ones, DType::f32, {0, 0, 325, 247.4, 0}},
      {Values::ones, DType::bf16, {0, 0, 68.1, 113.7, 0}},
      {Values::ones, DType::f16, {0, 0, 13.7, 0, 0}},
      {Values::positive_v, DType::f32, {0, 0, 204.6, 239.5, 0}},
      {Values::positive_v, DType::bf16, {0, 0, 4.6, 3.5, 0}},
      {Values::positive_v, DType::f16, {0, 0, 5.9, 5.1, 0}},
      {Values::negative_logits, DType::f32, {0, 0, 520.4, 180.5, 0}},
      {Values::negative_logits, DType::bf16, {0, 0, 73.8, 5.9, 0}},
      {Values::negative_logits, DType::f16, {0, 0, 100.5, 18.6, 0}},
      {Values::maximum_last, DType::f32, {0, 0, 358.8, 139.4, 0}},
      {Values::maximum_last, DType::bf16, {0, 0, 9.8, 4.2, 0}},
      {Values::maximum_last, DType::f16, {0, 0, 8.2, 0, 0}},
      {Values::denormals, DType::f32, {0, 0, 200.5, 170.1, 0}},
      {Values::denormals, DType::bf16, {0, 0, 3.5, 3.6, 0}},
      {Values::denormals, DType::f16, {0, 0, 4.5, 4.5, 0}},
      {Values::integers, DType::f32, {0, 0, 521.6, 522.4, 0}},
      {Values::integers, DType::bf16, {0, 0, 5.2, 3.7, 0}},
      {Values::integers, DType::f16, {0, 0, 11, 7.6, 0}},
  };
  return table;
}

const std::vector<Tightness>& first_medians_of_features() {
  static const std::vector<Tightness> table{
      {Values::normal, DType::f32, {0, 0, 0, 0, 0, 83.9, 57.1}},
      {Values::normal, DType::bf16, {0, 0, 0, 0, 0, 1, 1.3}},
      {Values::normal, DType::f16, {0, 0, 0, 0, 0, 2.1, 1.7}},
      {Values::x4, DType::f32, {0, 0, 0, 0, 0, 72.4, 76.8}},
      {Values::x4, DType::bf16, {0, 0, 0, 0, 0, 1, 1.4}},
      {Values::x4, DType::f16, {0, 0, 0, 0, 0, 1.6, 2.1}},
      {Values::all_positive, DType::f32, {0, 0, 0, 0, 0, 107.9, 74.4}},
      {Values::all_positive, DType::bf16, {0, 0, 0, 0, 0, 1.1, 1.3}},
      {Values::all_positive, DType::f16, {0, 0, 0, 0, 0, 1.9, 1.8}},
      {Values::uniform, DType::f32, {0, 0, 0, 0, 0, 125.5, 46}},
      {Values::uniform, DType::bf16, {0, 0, 0, 0, 0, 1.1, 1.3}},
      {Values::uniform, DType::f16, {0, 0, 0, 0, 0, 2.2, 1.6}},
      {Values::cancelling, DType::f32, {0, 0, 0, 0, 0, 85.5, 81.1}},
      {Values::cancelling, DType::bf16, {0, 0, 0, 0, 0, 1.1, 1.2}},
      {Values::cancelling, DType::f16, {0, 0, 0, 0, 0, 1.7, 1.4}},
  };
  return table;
}

namespace {

// Families in which most results may be exact or vanish, so that the median of the others says
// nothing.
bool may_lack_errors(Values values) {
  return values == Values::one_hot || values == Values::logits_1e4 || values == Values::ones;
}

double of(const Medians& medians, const std::string& output) {
  if (output == "O") return medians.O;
  if (output == "LSE") return medians.LSE;
  if (output == "dQ") return medians.dQ;
  if (output == "dSinks") return medians.dSinks;
  if (output == "dBias") return medians.dBias;
  return output == "dK" ? medians.dK : medians.dV;
}

}  // namespace

Looseness looseness(const Cell& cell, const std::vector<Tightness>& table, double rounding) {
  constexpr double kLooserAtMost = 1.5;
  Looseness result;
  for (const Tightness& row : table) {
    if (row.values != cell.values || row.dtype != cell.dtype) continue;
    for (const auto& [output, found] : cell.statistics) {
      const double known = of(row.of, output);
      if (known == 0 || (may_lack_errors(cell.values) && !found.has_typical_error)) continue;
      ++result.compared;
      const bool rounded = output != "O" && output != "LSE";
      if (found.median <= kLooserAtMost * (rounded ? known + rounding : known)) continue;
      result.looser.push_back(std::string(name(cell.values)) + " " + std::string(name(cell.dtype)) +
                              " " + output + ": " + std::to_string(found.median) + ", known " +
                              std::to_string(known));
    }
  }
  return result;
}

}  // namespace attest::proptest
