// Inference of logical axes and sizes from the names and shapes of parameters, for models that state neither.
#include <capibara/error.h>
#include <capibara/model.h>

#include <algorithm>
#include <cmath>
#include <regex>

namespace capibara {

namespace {

struct AxisRule {
  std::regex pattern;
  std::vector<std::string> axes;  // of the last dimensions
  const char* words;
};

std::regex insensitive(const char* text) { return std::regex(text, std::regex::icase | std::regex::optimize); }

// The first match applies; names end in the part that holds the array, such as kernel or weight.
const std::vector<AxisRule>& axis_rules() {
  static const std::vector<AxisRule> rules = {
      {insensitive("expert.*(^|[./_])(up|gate|wi|w1|w3)([./_]|$)"), {"expert", "embed", "mlp"}, "experts widen"},
      {insensitive("expert.*(^|[./_])(down|wo|w2)([./_]|$)"), {"expert", "mlp", "embed"}, "experts narrow"},
      {insensitive("(^|[./])(q|k|v|qkv|query|key|value|c_attn|in_proj)(_proj)?[./](.*[./])?(b|bias)$"), {"heads"}, ""},
      {insensitive("(^|[./])(up|gate|gate_up|wi|w1|w3|fc1|c_fc)(_proj)?[./](.*[./])?(b|bias)$"), {"mlp"}, ""},
      {insensitive("(^|[./])(b|bias|scale)$"), {}, "biases and scales are whole"},
      {insensitive("(^|[./])(q|k|v|qkv|query|key|value|c_attn|in_proj)(_proj)?([./]|$)"),
       {"embed", "heads"},
       "queries, keys and values are [embed, heads]"},
      {insensitive("(^|[./])(up|gate|gate_up|wi|w1|w3|fc1|c_fc)(_proj)?([./]|$)"),
       {"embed", "mlp"},
       "the first matrices of an MLP are [embed, mlp]"},
      {insensitive("(^|[./])(down|w2|fc2)(_proj)?([./]|$)"),
       {"mlp", "embed"},
       "the last matrix of an MLP is [mlp, embed]"},
      {insensitive("(^|[./])(o|out|wo|c_proj|out_proj)(_proj)?([./]|$)"),
       {"heads", "embed"},
       "the output of attention is [heads, embed]"},
      {insensitive("lm_head|(^|[./])head([./]|$)"), {"embed", "vocab"}, "the head is [embed, vocab]"},
      {insensitive("embed|(^|[./])wte([./]|$)"), {"vocab", "embed"}, "embeddings are [vocab, embed]"},
  };
  return rules;
}

bool is_table(const std::string& name) {
  static const std::regex pattern = insensitive("embed|vocab|wte|lm_head|head");
  return std::regex_search(name, pattern);
}

struct Matrix {
  std::string name;
  int64_t rows, columns, count;  // `count` matrices in one array
};

}  // namespace

LogicalAxes infer_logical_axes(const ParameterTypes& types) {
  LogicalAxes result;
  result.inferred = true;
  int64_t unknown = 0;
  std::vector<bool> used(axis_rules().size());
  for (const auto& [name, type] : types) {
    const std::size_t rank = type.shape.size();
    std::vector<std::string> axes(rank);
    bool found = rank < 2;
    for (std::size_t r = 0; r < axis_rules().size(); ++r) {
      const AxisRule& rule = axis_rules()[r];
      if (!std::regex_search(name, rule.pattern)) continue;
      if (rule.axes.size() > rank) continue;
      std::copy(rule.axes.begin(), rule.axes.end(), axes.end() - static_cast<std::ptrdiff_t>(rule.axes.size()));
      found = used[r] = true;
      break;
    }
    if (!found) ++unknown;
    result.of[name] = std::move(axes);
  }
  for (std::size_t r = 0; r < used.size(); ++r) {
    if (used[r] && *axis_rules()[r].words) result.assumptions.emplace_back(concat("by name: ", axis_rules()[r].words));
  }
  if (unknown > 0)
    result.assumptions.push_back(concat(unknown, " matrices whose names say nothing have no logical axes"));
  return result;
}

ModelSizes infer_sizes(const ParameterTypes& types) {
  ModelSizes sizes;
  sizes.inferred = true;
  std::vector<Matrix> matrices;
  std::map<int64_t, int64_t> sides;
  for (const auto& [name, type] : types) {
    sizes.parameters += type.size();
    const Shape& shape = type.shape;
    if (shape.size() < 2) continue;
    const int64_t rows = shape[shape.size() - 2], columns = shape.back();
    if (rows == 0 || columns == 0) continue;
    matrices.push_back({name, rows, columns, type.size() / (rows * columns)});
    sides[rows] += matrices.back().count;
    sides[columns] += matrices.back().count;
  }
  if (matrices.empty()) {
    throw ValueError(concat("infer_sizes: ", types.size(),
                            " parameters without a matrix among them show no sizes of a transformer; state sizes"));
  }
  int64_t most = 0;
  for (const auto& [side, count] : sides) {  // of equally frequent ones, the smallest
    if (count > most) {
      sizes.width = side;
      most = count;
    }
  }
  int64_t tables = 0, table_elements = 0;
  for (const Matrix& m : matrices) {
    if (is_table(m.name)) {
      if (m.rows != sizes.width && m.columns != sizes.width) continue;
      sizes.vocabulary = std::max({sizes.vocabulary, m.rows, m.columns});
      table_elements += m.rows * m.columns;
      ++tables;
    } else {
      sizes.hidden = std::max({sizes.hidden, m.rows, m.columns});
    }
  }
  const bool no_table = sizes.vocabulary == 0;
  if (no_table) sizes.vocabulary = sizes.width;
  if (sizes.hidden == 0) sizes.hidden = sizes.width;
  const double layer = static_cast<double>(4 * sizes.width * sizes.width + 2 * sizes.width * sizes.hidden);
  const double inside = static_cast<double>(std::max<int64_t>(sizes.parameters - table_elements, 1));
  sizes.layers = std::max<int64_t>(1, static_cast<int64_t>(std::nearbyint(inside / layer)));
  for (int64_t head : {128, 64, 32, 16, 8, 4, 2, 1}) {
    if (sizes.width % head != 0) continue;
    sizes.head_size = head;
    break;
  }
  sizes.heads = sizes.key_heads = sizes.width / sizes.head_size;
  sizes.tied = tables < 2;
  sizes.assumptions = {
      "the model is a transformer of layers with attention and an MLP of two matrices",
      concat("width ", sizes.width, ": the most frequent side of its matrices"),
      concat("hidden ", sizes.hidden, ": the largest side of a matrix that is not a table"),
      no_table
          ? concat("vocabulary ", sizes.vocabulary, ": no table of tokens was found, so it is the width")
          : concat("vocabulary ", sizes.vocabulary, ": the largest side of a table named embedding, vocab or head"),
      concat("layers ", sizes.layers, ": ", sizes.parameters,
             " parameters, without tables, divided by those of a layer"),
      concat("heads ", sizes.heads, " of ", sizes.head_size),
  };
  return sizes;
}

}  // namespace capibara
