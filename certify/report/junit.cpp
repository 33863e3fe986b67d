#include "certify/report/junit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <sstream>

#include "certify/plan/sizes.hpp"
#include "certify/printable.hpp"
#include "certify/report/certificate_fields.hpp"
#include "core/error.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

// pugixml escapes what XML reserves; control characters it would write as they are.
void set(pugi::xml_node node, const char* name, const std::string& value) {
  node.append_attribute(name).set_value(printable(value).c_str());
}

struct Counts {
  std::size_t tests = 0, failures = 0, errors = 0, skipped = 0;

  void write(pugi::xml_node node) const {
    set(node, "tests", std::to_string(tests));
    set(node, "failures", std::to_string(failures));
    set(node, "errors", std::to_string(errors));
    set(node, "skipped", std::to_string(skipped));
  }
};

class Suite {
 public:
  Suite(pugi::xml_node suites, const std::string& kernel)
      : node_(suites.append_child("testsuite")), kernel_(kernel) {
    set(node_, "name", kernel);
  }

  void tell(const char* name, const std::string& value) {
    pugi::xml_node properties = node_.child("properties");
    if (!properties) properties = node_.append_child("properties");
    pugi::xml_node property = properties.append_child("property");
    set(property, "name", name);
    set(property, "value", value);
  }

  pugi::xml_node test(const std::string& name) {
    ++counts_.tests;
    pugi::xml_node node = node_.append_child("testcase");
    set(node, "classname", kernel_);
    set(node, "name", name);
    return node;
  }

  void fail(pugi::xml_node test, const std::string& type, const std::string& message,
            const std::string& text) {
    const bool crashed = type == "crashed";
    ++(crashed ? counts_.errors : counts_.failures);
    pugi::xml_node node = test.append_child(crashed ? "error" : "failure");
    set(node, "type", type);
    set(node, "message", message);
    node.append_child(pugi::node_pcdata).set_value(printable_lines(text).c_str());
  }

  void skip(pugi::xml_node test, const std::string& message) {
    ++counts_.skipped;
    set(test.append_child("skipped"), "message", message);
  }

  Counts finish(double seconds) {
    counts_.write(node_);
    set(node_, "time", fmt::format("{:.3f}", seconds));
    return counts_;
  }

 private:
  pugi::xml_node node_;
  std::string kernel_;
  Counts counts_;
};

std::string finding_text(const json& finding) {
  std::string text = finding.at("message").get<std::string>() + "\n";
  for (const json& law : finding.value("also", json::array())) {
    text += "also fails: " + law.get<std::string>() + "\n";
  }
  if (const auto term = finding.at("bound_term").get<std::string>(); !term.empty()) {
    text += "largest term of the bound of " + term + "\n";
  }
  for (const json& signature : finding.at("signatures")) {
    text += "equals " + signature.at("equals").get<std::string>() + "\n";
  }
  for (const json& one : finding.value("suspicions", json::array())) {
    text += "seen: it " + one.at("deed").get<std::string>() + "\n";
  }
  for (const json& hint : finding.value("hints", json::array())) {
    text += hint.get<std::string>() + "\n";
  }
  text += "reproduce: " + finding.at("reproduce").get<std::string>() + "\n";
  if (finding.at("file").is_string()) {
    text += "tensors: " + finding.at("file").get<std::string>() + "\n";
  }
  return text;
}

void add_law(Suite& suite, const json& kernel, const std::string& law, const json& count) {
  pugi::xml_node test = suite.test(law);
  const double passed = count.at("passed").get<double>();
  bool failed = false;
  std::string skipped;  // why a failure does not count; a test that fails is not skipped as well
  for (const json& finding : kernel.at("findings")) {
    const json also = finding.value("also", json::array());
    const bool folded = std::find(also.begin(), also.end(), law) != also.end();
    if (finding.at("law") != law && !folded) continue;
    const auto message = finding.at("message").get<std::string>();
    if (!standing_of(finding).empty()) {
      skipped = (finding.value("known", false) ? "known failure: " : "undecided: ") + message;
      continue;
    }
    failed = true;
    suite.fail(test, finding.at("verdict").get<std::string>(),
               folded ? "as " + finding.at("law").get<std::string>() + ": " + message : message,
               finding_text(finding));
  }
  if (!failed && !skipped.empty()) {
    suite.skip(test, skipped);
    return;
  }
  // In older certificates a law that met a fault already told of is in no finding.
  if (!failed && count.at("failed").get<double>() > 0) {
    suite.fail(test, kernel.at("verdict").get<std::string>(), "failed as another law did", "");
    return;
  }
  if (failed || passed > 0) return;
  suite.skip(test, fmt::format("no case counted: {} vacuous, {} unsupported",
                               count.at("vacuous").dump(), count.at("unsupported").dump()));
}

std::string joined(const json& lines) {
  std::string text;
  for (const json& line : lines) text += line.get<std::string>() + "\n";
  return text;
}

Counts add_kernel(pugi::xml_node suites, const json& kernel, double seconds) {
  Suite suite(suites, kernel.at("kernel").get<std::string>());
  if (kernel.contains("ran")) suite.tell("ran", kernel.at("ran").get<std::string>());
  if (const json id = kernel.value("library_sha256", json()); id.is_string()) {
    suite.tell("SHA-256 of the file", id.get<std::string>());
  }
  const json mask = kernel.value("mask", json(nullptr));
  if (mask.is_string()) suite.tell("mask", mask.get<std::string>());
  const json sizes = kernel.at("coverage").value("sizes", json::object());
  for (const auto& [of_mask, covered] : sizes.items()) {
    suite.tell("sizes covered", of_mask + ": " + sizes_text(covered));
  }
  for (const auto& [law, count] : kernel.at("laws").items()) add_law(suite, kernel, law, count);
  if (!kernel.at("law").is_string()) {
    pugi::xml_node test = suite.test(mask.is_string() ? "complete on the mask" : "complete");
    const json& gaps = kernel.at("incomplete");
    // A finding ended its law before its cases met all that is claimed; it tells, or is known.
    const bool of_findings = kernel.value("not_judged", json::array()).empty();
    if (!gaps.empty() && !kernel.at("findings").empty() && of_findings) {
      suite.skip(test, gaps.front().get<std::string>());
    } else if (!gaps.empty()) {
      suite.fail(test, "incomplete", gaps.front().get<std::string>(), joined(gaps));
    }
  }
  for (const char* part : {"io", "io_backward"}) {
    const json io = kernel.value(part, json());
    if (!io.is_object()) continue;
    pugi::xml_node test = suite.test(part);
    const json& violations = io.at("violations");
    if (!violations.empty()) {
      suite.fail(test, "violated", violations.front().get<std::string>(), joined(violations));
    }
  }
  return suite.finish(seconds);
}

std::string document(const json& certificate) {
  pugi::xml_document xml;
  pugi::xml_node declaration = xml.prepend_child(pugi::node_declaration);
  declaration.append_attribute("version") = "1.0";
  declaration.append_attribute("encoding") = "UTF-8";
  pugi::xml_node suites = xml.append_child("testsuites");
  set(suites, "name", "attest certify");
  const json seconds = certificate.at("timings").value("seconds", json::object());
  Counts sum;
  for (const json& kernel : certificate.at("kernels")) {
    const Counts one =
        add_kernel(suites, kernel, seconds.value(kernel.at("kernel").get<std::string>(), 0.0));
    sum.tests += one.tests;
    sum.failures += one.failures;
    sum.errors += one.errors;
    sum.skipped += one.skipped;
  }
  sum.write(suites);
  std::ostringstream text;
  xml.save(text, "  ");
  return text.str();
}

}  // namespace

std::string junit_report(const json& certificate) {
  return reading_certificate([&] { return document(certificate); });
}

}  // namespace attest::certify
