// Nests that look up their results: a function of one large array of 16-bit floats has at most 65536 values.
//
//   for i: y[i] = gelu(x[i])      becomes      for each code c: t[c] = gelu(c)
//                                              for i: y[i] = t[x[i]]
//
// The table holds exactly the bits that the loops would compute; for one call of a function it costs as much as 65536
// elements.
#include "backends/cpu/regions/nest.h"
#include "program/ir/handles.h"

namespace capibara::cpu {

namespace {

constexpr int64_t codes = 65536;
constexpr int64_t min_table_elements = 8 * codes;
constexpr int64_t elements_at_once = 8;
constexpr std::size_t max_tables = 2;
constexpr double nanoseconds_per_element = 0.6;

class TableNest : public NestWriter {
 public:
  TableNest(const Program& program, const Fusion& fusion, const Group& group, const Aliases& aliases)
      : NestWriter(program, fusion, group, aliases) {
    open_space(group_.space.size());
    for (std::size_t d = 0; d < group_.space.size(); ++d) index_.push_back(Affine::of(static_cast<Symbol>(d)));
  }

  // The array whose elements alone decide the results.
  std::optional<Var> operand() const {
    if (element_count(group_.space) < min_table_elements || group_.guarded || group_.transposed ||
        group_.results.size() > max_tables)
      return std::nullopt;
    bool expensive = false;
    for (std::size_t e = 0; e < program_.equations().size(); ++e) {
      if (fusion_.home[e] != group_number_) continue;
      const Primitive& primitive = program_.equations()[e].primitive;
      if (is_reduction(primitive) || primitive == prim::random_bits()) return std::nullopt;
      expensive = expensive || is_expensive(primitive);
    }
    if (!expensive) return std::nullopt;
    for (int e : group_.results) {
      if (part_count(type(equation(e).outputs[0]).dtype) != 1) return std::nullopt;
    }
    const Affine here = linear(index_, group_.space);
    std::optional<Var> found;
    for (int e : members()) {
      for (const Access& access :
           accesses(program_, fusion_, equation(e), index_, stops_, static_cast<Symbol>(index_.size()))) {
        if (access.var.dropped()) return std::nullopt;
        if (own_result(access.var) != -1) continue;
        const Affine place = linear(access.index, type(access.var).shape);
        if (place.is_constant()) continue;
        if (place != here || (found && *found != access.var)) return std::nullopt;
        found = access.var;
      }
    }
    if (!found || type(*found).size() != element_count(group_.space)) return std::nullopt;
    const DType dtype = type(*found).dtype;
    return dtype == DType::bfloat16 || dtype == DType::float16 ? found : std::nullopt;
  }

  Region fill(Var operand) {
    operand_ = operand;
    const int32_t room = temporary(table_bytes());
    loop(codes, {.lanes = true, .parallel = true}, [&](Value code) {
      code_ = code;
      zero_unset();
      std::vector<std::pair<DType, Element>> values;
      for (int e : members()) {
        const Element value = computed(e, index_);
        if (listed(group_.results, e)) values.emplace_back(type(equation(e).outputs[0]).dtype, value);
      }
      for (std::size_t i = 0; i < values.size(); ++i) {
        store_element(builder_, values[i].first, {room, table_offset(i), {{code, 1}}}, values[i].second);
      }
    });
    return finish();
  }

  Region look_up(Var operand) {
    const int32_t room = temporary(table_bytes());
    const int64_t size = element_count(group_.space), step = size % elements_at_once == 0 ? elements_at_once : 1;
    const int32_t from = parameter(operand);
    loop(size / step, {.parallel = true}, [&](Value iteration) {
      std::vector<Value> found;
      for (int64_t i = 0; i < step; ++i) {
        const Value word = builder_.load(Scalar::i16, {from, i, {{iteration, step}}});
        found.push_back(builder_.convert(Op::zero_extend, Scalar::i64, word));
      }
      // A result may reuse the memory of the operand.
      for (std::size_t k = 0; k < group_.results.size(); ++k) {
        const Var output = equation(group_.results[k]).outputs[0];
        const Scalar stored = stored_type(type(output).dtype);
        for (int64_t i = 0; i < step; ++i) {
          const Value value = builder_.load(stored, {room, table_offset(k), {{found[at(i)], 1}}});
          builder_.store(value, {parameter(output), i, {{iteration, step}}});
        }
      }
    });
    Region region = finish();
    region.function.cost = static_cast<double>(step) * nanoseconds_per_element;
    return region;
  }

 private:
  int64_t element_size(std::size_t result) const {
    return storage_size(type(equation(group_.results[result]).outputs[0]).dtype);
  }
  // The offset of a result's table, in its elements: element sizes are powers of two, so that the offset is divisible
  // by any of them.
  int64_t table_offset(std::size_t result) const { return bytes_before(result) / element_size(result); }
  int64_t table_bytes() const { return bytes_before(group_.results.size()); }
  int64_t bytes_before(std::size_t end) const {
    int64_t bytes = 0;
    for (std::size_t i = 0; i < end; ++i) bytes += codes * element_size(i);
    return bytes;
  }

  std::optional<Element> held(Var var, int, const Index&) override {
    if (!operand_ || var != *operand_) return std::nullopt;
    const DType dtype = type(var).dtype;
    const Value word = builder_.convert(Op::narrow, Scalar::i16, code_);
    return element_of_stored(builder_, dtype, builder_.convert(Op::bitcast, stored_type(dtype), word));
  }

  Index index_;
  std::optional<Var> operand_;  // whose elements are the codes themselves
  Value code_ = no_value;
};

}  // namespace

std::vector<Region> write_table_nest(const Program& program, const Fusion& fusion, const Group& group,
                                     const Aliases& aliases) {
  const std::optional<Var> operand = TableNest(program, fusion, group, aliases).operand();
  std::vector<Region> regions;
  if (!operand) return regions;
  regions.push_back(TableNest(program, fusion, group, aliases).fill(*operand));
  regions.push_back(TableNest(program, fusion, group, aliases).look_up(*operand));
  return regions;
}

}  // namespace capibara::cpu
