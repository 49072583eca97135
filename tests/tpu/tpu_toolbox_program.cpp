// Reads configurations, one per line as field=value, and prints the toolbox's results for each; pytest compares them
// with Python's.
#include <capibara/tpu.h>

#include <cstdio>
#include <iostream>
#include <sstream>

namespace {

using namespace capibara;
using namespace capibara::tpu;

FieldValue read_value(const std::string& text) {
  if (text == "True" || text == "False") return text == "True";
  const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
  if (digits) return static_cast<int64_t>(std::stoll(text));
  if (text.find(',') != std::string::npos) {
    std::vector<int64_t> sizes;
    std::istringstream in(text);
    for (std::string word; std::getline(in, word, ',');) sizes.push_back(std::stoll(word));
    return sizes;
  }
  if (text.find("e+") != std::string::npos) return std::stod(text);
  return text;
}

void print(const char* name, double value) { std::printf("%s %.12g\n", name, value); }
void print(const char* name, const std::string& value) { std::printf("%s %s\n", name, value.c_str()); }
void print(const char* name, const PartitionSpec& spec) {
  std::string text;
  for (const AxisList& axes : spec.dims) {
    for (const std::string& axis : axes) text += axis + "+";
    text += ",";
  }
  print(name, text);
}

void print_all(TPUConfig config) {
  for (const std::string& note : config.validate()) print("note", note);
  print("slice", config.slice_name());
  print("tflops", config.get_total_tflops());
  print("memory", config.memory_bytes());
  print("remat", config.remat_policy());
  const auto [data, model] = config.logical_mesh();
  print("data", static_cast<double>(data));
  print("model", static_cast<double>(model));
  const PerformanceMetrics metrics = config.get_performance_metrics();
  print("hbm", metrics.memory_bandwidth_gb_s);
  print("ici", metrics.interconnect_bandwidth_gb_s);
  print("utilization", metrics.utilization.value.value_or(-1));
  print("origin", metrics.utilization.origin);
  print("samples", metrics.throughput_samples_s.value.value_or(-1));
  print("spec", config.get_sharding_spec({64, 3, 128}));
  const MemoryConfig memory = config.get_memory_config();
  print("types", memory.compute_dtype + " " + memory.param_dtype + (memory.use_mixed_precision ? " mixed" : ""));
  for (const auto& [name, value] : config.xla_flags()) print(name.c_str(), value);
  const Training training = config.training("1.3b", 1024, 4);
  print("total_gib", plan_memory(training).total_gib);
  print("seconds", plan_step(training).seconds);
  std::vector<float> load(16);
  for (std::size_t i = 0; i < load.size(); ++i) load[i] = static_cast<float>(i % 5) / 4;
  for (const auto& [row, column] : config.detect_hotspots(Array::from_host(DType::float32, {2, 8}, load.data())))
    std::printf("hotspot %d %d\n", static_cast<int>(row), static_cast<int>(column));
  print("optimized", config.optimize_sharding());
  PlanRequest request{PlannedModel("350m"), config.slice_name(), 1024};
  for (const char* strategy : {"none", "normal", "aggressive"}) {
    const MemoryEstimate found =
        MemoryOptimizer({.strategy = strategy, .activation_checkpointing_layers = 2}).estimate_memory(request);
    print("total_gb", *found.total_gb.value);
    print("of", found.total_gb.origin);
  }
  const PlannedBatch batch =
      find_optimal_batch_size({.model = "350m", .sequence_length = 1024, .tpu = config.slice_name()});
  print("batch", static_cast<double>(batch.sequences));
  print("of", batch.origin);
  const BottleneckAnalysis found = analyze_bottlenecks(request);
  print("compute", *found.compute_bound.value);
  print("bound", found.bound);
  for (const Recommendation& one : found.recommendations) print("recommendation", one.text);
  const PerformanceDiagnosis diagnosis = diagnose_performance(request, {.target_tflops = 1e5});
  for (const PerformanceIssue& issue : diagnosis.issues)
    print("issue", issue.problem + ": " + issue.impact + ": " + issue.solution);
  auto type = [](Shape shape, DType dtype = DType::float32) {
    ArrayType made;
    made.shape = std::move(shape);
    made.dtype = dtype;
    return made;
  };
  const ParameterTypes types = {{"embed/table", type({256, 64})},
                                {"layers/0/q_proj/weight", type({64, 64})},
                                {"layers/0/down/weight", type({256, 64}, DType::bfloat16)},
                                {"layers/0/experts/up", type({4, 64, 256})},
                                {"norm/scale", type({64})}};
  for (const char* strategy : {"fsdp", "megatron", "expert"})
    print("table", sharding_table(types, Mesh{{"data", "model", "expert"}, {data, model, 2}, {}}, {strategy}).text());
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::printf("== %s\n", line.c_str());
    try {
      TPUSettings settings;
      std::istringstream words(line);
      for (std::string word; words >> word;) {
        const std::size_t equals = word.find('=');
        set_field(settings, word.substr(0, equals), read_value(word.substr(equals + 1)));
      }
      print_all(TPUConfig(settings));
    } catch (const Error& error) {
      std::printf("error %s\n", error.what());
    }
  }
  return 0;
}
