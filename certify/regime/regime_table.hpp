#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "certify/regime/regime.hpp"
#include "fixtures/devices.hpp"

/// Devices by models: the rows of `attest regime`.
namespace attest::certify {

/// A device's boundary, or a size given by hand, which has no device.
struct RegimePlace {
  std::string device, source;
  fixtures::Boundary boundary;
};

/// An attention layer: a model's, or one given by hand.
struct RegimeShape {
  std::string model, source;
  io::Storage storage = io::Storage::disjoint;  // whether K and V are stored as one
  Problem problem;
};

/// One place, shape and width.
struct RegimeRow {
  RegimePlace place;
  RegimeShape shape;
  WordType word;
  CacheSize size;
  std::vector<Prediction> predictions;  // one for each direction asked for
};

/// Contents of a table; every place with every shape and width.
struct RegimeTable {
  std::vector<RegimePlace> places;
  std::vector<RegimeShape> shapes;
  std::vector<WordType> words;
  std::vector<Direction> directions;  // none: sizes only
};

/// All boundaries of the devices named, in letters of either case, of all devices when none is.
/// Throws InvalidProblem with the nearest name for one that is unknown. [certify/regime/regime_test
/// "unknown names"]
std::vector<RegimePlace> places_of(const std::vector<std::string>& devices);

/// The models named, in letters of either case, all when none is. Throws as places_of.
std::vector<RegimeShape> shapes_of(const std::vector<std::string>& models);

/// The rows, place by place, then shape by shape, worked out on all threads. Calls `progress`, one
/// call at a time, with the rows done and all.
std::vector<RegimeRow> regime_rows(
    const io::ScheduleRegistry& schedules, const RegimeTable& table,
    const std::function<void(std::uint64_t, std::uint64_t)>& progress);

/// The rows and the statements, certify/schemas/regime.schema.json.
nlohmann::json regime_json(const std::vector<RegimeRow>& rows);

}  // namespace attest::certify
