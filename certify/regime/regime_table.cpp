#include "certify/regime/regime_table.hpp"

#include <algorithm>
#include <cctype>
#include <exception>
#include <nlohmann/json.hpp>

#include "certify/regime/statements.hpp"
#include "core/error.hpp"
#include "core/text/suggest.hpp"
#include "fixtures/models.hpp"

namespace attest::certify {
namespace {

// Returns the rows of the table that are named, in the order named; all when none is.
template <class Row>
std::vector<Row> chosen(const std::vector<Row>& table, const std::vector<std::string>& names,
                        const std::string& what) {
  if (names.empty()) return table;
  std::vector<std::string> known;
  known.reserve(table.size());
  for (const Row& row : table) known.push_back(row.name);
  std::vector<Row> rows;
  for (std::string name : names) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    const std::size_t before = rows.size();
    for (const Row& row : table) {
      if (row.name == name) rows.push_back(row);
    }
    if (rows.size() > before) continue;
    std::string all;
    for (const std::string& one : known) all += " " + one;
    throw InvalidProblem(what + ": '" + name + "' is unknown" + did_you_mean(name, known) + " (" +
                         what + "s:" + all + ")");
  }
  return rows;
}

nlohmann::json prediction_json(const Prediction& prediction, const WordType& word) {
  nlohmann::json object{{"direction", name(prediction.direction)}};
  if (!prediction.refusal.empty()) {
    object["refusal"] = prediction.refusal;
    return object;
  }
  object["schedule"] = prediction.schedule;
  object["words"] = prediction.words;
  object["bytes"] = prediction.words * word.bytes;
  object["lower"] = nullptr;
  object["ratio"] = nullptr;
  if (prediction.lower) {
    object["lower"] = {{"name", prediction.lower->name}, {"words", prediction.lower->words}};
  }
  if (prediction.ratio) object["ratio"] = *prediction.ratio;
  return object;
}

nlohmann::json size_json(const CacheSize& size) {
  return {{"fast_words", size.fast_words},
          {"ratio", size.ratio},
          {"regime", size.regime == CacheRegime::large ? "large" : "small"}};
}

nlohmann::json statements_json() {
  nlohmann::json list = nlohmann::json::array();
  for (const Statement& statement : statements()) {
    nlohmann::json object{{"source", statement.source},
                          {"text", statement.text},
                          {"figures", nlohmann::json::array()}};
    for (const Figure& figure : figures(statement)) {
      nlohmann::json one = size_json(figure.size);
      one["place"] = figure.place;
      one["dtype"] = figure.word;
      one["head_dim_qk"] = figure.head_dim_qk;
      one["head_dim_v"] = figure.head_dim_v;
      one["holds"] = figure.holds == Figure::Holds::yes;
      object["figures"].push_back(one);
    }
    list.push_back(object);
  }
  return list;
}

}  // namespace

std::vector<RegimePlace> places_of(const std::vector<std::string>& devices) {
  std::vector<RegimePlace> places;
  for (const fixtures::Device& device : chosen(fixtures::devices(), devices, "device")) {
    for (const fixtures::Boundary& boundary : device.boundaries) {
      places.push_back({device.name, device.source, boundary});
    }
  }
  return places;
}

std::vector<RegimeShape> shapes_of(const std::vector<std::string>& models) {
  std::vector<RegimeShape> shapes;
  for (const fixtures::Model& model : chosen(fixtures::models(), models, "model")) {
    const io::Storage storage = model.sharing == fixtures::Sharing::value_in_key
                                    ? io::Storage::key_is_value
                                    : io::Storage::disjoint;
    shapes.push_back({model.name, model.source, storage, model.problem});
  }
  return shapes;
}

std::vector<RegimeRow> regime_rows(
    const io::ScheduleRegistry& schedules, const RegimeTable& table,
    const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  std::vector<RegimeRow> rows;
  for (const RegimePlace& place : table.places) {
    for (const RegimeShape& shape : table.shapes) {
      for (const WordType& word : table.words) {
        rows.push_back({place,
                        shape,
                        word,
                        cache_size(place.boundary.fast_bytes, word, shape.problem.head_dim_qk,
                                   shape.problem.head_dim_v),
                        {}});
      }
    }
  }
  std::uint64_t done = 0;
  std::exception_ptr failure;
#pragma omp parallel for schedule(dynamic)
  for (RegimeRow& row : rows) {
    try {
      for (const Direction direction : table.directions) {
        row.predictions.push_back(predict(schedules, direction, row.shape.problem,
                                          row.size.fast_words, row.shape.storage));
      }
    } catch (...) {
#pragma omp critical
      failure = std::current_exception();
    }
#pragma omp critical
    progress(++done, rows.size());
  }
  if (failure) std::rethrow_exception(failure);
  return rows;
}

nlohmann::json regime_json(const std::vector<RegimeRow>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const RegimeRow& row : rows) {
    const fixtures::Boundary& boundary = row.place.boundary;
    nlohmann::json object = size_json(row.size);
    object["device"] = row.place.device;
    object["device_source"] = row.place.source;
    object["model_source"] = row.shape.source;
    object["fast"] = boundary.fast;
    object["slow"] = boundary.slow;
    object["per"] = boundary.per;
    object["fast_bytes"] = boundary.fast_bytes;
    object["model"] = row.shape.model;
    object["problem"] = row.shape.problem.to_string();
    object["head_dim_qk"] = row.shape.problem.head_dim_qk;
    object["head_dim_v"] = row.shape.problem.head_dim_v;
    object["dtype"] = row.word.name;
    object["predictions"] = nlohmann::json::array();
    for (const Prediction& prediction : row.predictions) {
      object["predictions"].push_back(prediction_json(prediction, row.word));
    }
    list.push_back(std::move(object));
  }
  return {{"schema", "attest-regime-1"}, {"rows", list}, {"statements", statements_json()}};
}

}  // namespace attest::certify
