// Programs with refs on backends that only support values: refs are read before and written after each call.
#include "backends/discharged.h"

#include "lax/effect/refs.h"
#include "program/trace/discharge.h"

namespace capibara {

namespace {

const RefBody& cell(const Array& ref) {
  const auto* body = dynamic_cast<const RefBody*>(ref.body().get());
  if (!body) throw InternalError(concat("a program takes a ref, got ", to_string(ref.type())));
  return *body;
}

class OnValues final : public Executable {
 public:
  OnValues(Discharged discharged, std::size_t outputs, std::shared_ptr<Executable> inner)
      : discharged_(std::move(discharged)), outputs_(outputs), inner_(std::move(inner)) {}

  Arrays execute(std::span<const Array> inputs, const std::vector<bool>& donated) override {
    Arrays values;
    for (const Array& input : inputs) values.push_back(input.type().ref ? cell(input).value : input);
    Arrays results = inner_->execute(values, donated);
    for (std::size_t i = 0; i < discharged_.written.size(); ++i) {
      cell(inputs[discharged_.written[i]]).value = results[outputs_ + i];
    }
    results.resize(outputs_);
    return results;
  }
  bool is_short() const override { return inner_->is_short(); }
  ExecutableDetails details(std::span<const std::shared_ptr<const NamedSharding>> inputs) override {
    return inner_->details(inputs);
  }

 private:
  const Discharged discharged_;
  const std::size_t outputs_;
  const std::shared_ptr<Executable> inner_;
};

}  // namespace

std::shared_ptr<Executable> compile_on_values(
    const Program& program, const std::vector<bool>& donated,
    const std::function<std::shared_ptr<Executable>(const Program&, const std::vector<bool>&)>& compile) {
  Discharged discharged = discharge(program);
  std::shared_ptr<Executable> inner = compile(discharged.program, donated);
  return std::make_shared<OnValues>(std::move(discharged), program.outputs().size(), std::move(inner));
}

}  // namespace capibara
