#include "io/bounds/formula.hpp"

namespace attest::io {

std::string segments_formula(const std::string& work, const std::string& less,
                             const std::string& maximum) {
  return "max_{X,Y} Y + X (h - 1) + 1" + less + ", h = ceil((" + work + " - " + maximum + "(Y))/" +
         maximum + "(M+X)) >= 1";
}

std::string linear_formula(const std::string& work, const std::string& less,
                           const std::string& lengths) {
  return "max_X max(X (T - F(X)), M F(M+X) + X (T - F(M)))/F(M+X)" + less + ", T = " + work +
         ", F(B) = (B/3)^(3/2)" + (lengths.empty() ? "" : ", " + lengths);
}

}  // namespace attest::io
