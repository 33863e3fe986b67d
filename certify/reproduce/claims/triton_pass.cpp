#include "certify/reproduce/claims/triton_pass.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.hpp"

namespace attest::certify {
namespace {

TritonPass pass_of(const nlohmann::json& line) {
  TritonPass pass;
  const std::string direction = line.at("direction");
  if (direction != "forward" && direction != "backward") {
    throw InvalidProblem(fmt::format("direction is '{}', not forward or backward", direction));
  }
  pass.direction = direction == "forward" ? Direction::forward : Direction::backward;
  pass.head_dim = line.at("head_dim");
  pass.tile = line.at("tile");
  pass.seqlen = line.at("seqlen");
  pass.moved_bytes = line.at("moved_bytes");
  pass.fast_bytes = line.at("fast_bytes");
  for (const nlohmann::json& launch : line.at("launches")) {
    pass.spills = pass.spills || launch.at("local_bytes") > 0;
    for (const auto& [tensor, words] : launch.at("read").items()) {
      pass.words[tensor].read += words.get<std::int64_t>();
    }
    for (const auto& [tensor, words] : launch.at("written").items()) {
      pass.words[tensor].written += words.get<std::int64_t>();
    }
  }
  return pass;
}

}  // namespace

std::vector<TritonPass> parse_triton_words(const std::string& lines) {
  std::vector<TritonPass> passes;
  std::istringstream text(lines);
  int number = 0;
  const auto refuse = [&number](const std::exception& error) {
    throw InvalidProblem(
        fmt::format("words of Triton: line {} is not one of docs/how-to/wild/triton_words.py: {}",
                    number, error.what()));
  };
  for (std::string line; std::getline(text, line);) {
    ++number;
    if (line.empty()) continue;
    try {
      passes.push_back(pass_of(nlohmann::json::parse(line)));
    } catch (const nlohmann::json::exception& error) {
      refuse(error);
    } catch (const InvalidProblem& error) {
      refuse(error);
    }
  }
  return passes;
}

std::map<std::string, WordsOfTensor> words_of_order(const TritonPass& pass) {
  const std::int64_t tiles = (pass.seqlen + pass.tile - 1) / pass.tile;
  const std::int64_t rows = pass.seqlen, matrix = rows * pass.head_dim;
  if (pass.direction == Direction::forward) {
    return {{"Q", {matrix, 0}},
            {"K", {tiles * matrix, 0}},
            {"V", {tiles * matrix, 0}},
            {"O", {0, matrix}},
            {"LSE", {0, rows}}};
  }
  const std::int64_t both_passes =
      1 + tiles;  // it stays in one, and goes by every tile in the other
  return {{"Q", {both_passes * matrix, 0}},
          {"K", {both_passes * matrix, 0}},
          {"V", {both_passes * matrix, 0}},
          {"dO", {both_passes * matrix, 0}},
          {"LSE", {both_passes * rows, 0}},
          {"O", {matrix, 0}},
          {"DELTA", {tiles * rows, rows}},
          {"dQ", {0, matrix}},
          {"dK", {0, matrix}},
          {"dV", {0, matrix}}};
}

}  // namespace attest::certify
