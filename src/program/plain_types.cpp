// Takes what varies out of all types of a program.
#include "program/plain_types.h"

#include "program/nested.h"

namespace capibara {

namespace {

void make_plain(std::vector<Array>& values) {
  for (Array& value : values) {
    if (value.type().sharding.varying().empty()) continue;
    ArrayType type = value.type();
    type.sharding = {};
    value = Array::from_buffer(type, value.buffer(), value.committed());
  }
}

}  // namespace

Program with_plain_types(const Program& program) {
  Program::Body body = program.body();
  for (ArrayType& type : body.var_types) type.sharding = {};
  make_plain(body.literals);
  make_plain(body.constants);
  for (Equation& equation : body.equations) equation.attrs = rewrite_programs(equation.attrs, with_plain_types);
  return Program(std::move(body));
}

}  // namespace capibara
