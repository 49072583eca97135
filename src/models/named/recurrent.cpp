// Recurrent cells, and sequences of them unrolled in time; batches shrink as sequences end.
#include "models/named/builder.h"

namespace capibara::models {

namespace {

Term linear(Builder& b, const Term& input, const Term& weight) {
  return b.add("Linear", {{"use_bias", false}}, {{"input", input}, {"weight", weight}});
}
Term linear(Builder& b, const Term& input, const Term& weight, const Term& bias) {
  return b.add("Linear", {}, {{"input", input}, {"weight", weight}, {"bias", bias}});
}

// The leading rows of a state, as many as the input has, and the rest, which belong to sequences that have ended.
struct Rows {
  Term first, rest;
};
Rows rows_of(Builder& b, const Term& state, const Term& input) {
  Term count = index(operate("Shape", input), 0);
  Term head = b.add("Slice", {}, {{"stop", count}}), tail = b.add("Slice", {}, {{"start", count}});
  Term first = b.add("Indexer", {}, {{"input", state}, {"index", head}});
  return {first, b.add("Indexer", {}, {{"input", state}, {"index", tail}})};
}

Model rnn_cell(const Arguments& a) {
  Builder b(a);
  Term input = b.input("input"), state = b.input("prev_hidden");
  Rows rows = rows_of(b, state, input);
  Term w_hh = b.weight("w_hh"), w_ih = b.weight("w_ih"), bias_h = b.weight("bias_h");
  Term past = linear(b, rows.first, w_hh);
  Term sum = past + linear(b, input, w_ih);
  Term hidden = operate("Tanh", sum + bias_h);
  b.output("hidden", hidden);
  b.output("hidden_compl", rows.rest);
  Term w_ho = b.weight("w_ho"), bias_o = b.weight("bias_o");
  b.output("output", linear(b, hidden, w_ho) + bias_o);
  b.shapes({{"input", "N, 1, d_in"},
            {"prev_hidden", "M, 1, d_hid"},
            {"w_ih", "d_hid, d_in"},
            {"w_hh", "d_hid, d_hid"},
            {"w_ho", "d_out, d_hid"},
            {"bias_h", "d_hid"},
            {"bias_o", "d_out"},
            {"hidden", "N, 1, d_hid"},
            {"output", "N, 1, d_out"}});
  return b.finish({"input"}, {"output"});
}

struct Gates {
  Term cell, hidden;
};

Gates lstm_gates(Builder& b, const Term& input, const Term& hidden, const Term& cell) {
  Term both = b.add("Concat", {{"axis", -1}}, {{"input", Term(Value(List{input.value(), hidden.value()}))}});
  auto gate = [&](const std::string& name, const char* activation) {
    Term weight = b.weight("w_" + name), bias = b.weight("bias_" + name);
    return operate(activation, linear(b, both, weight, bias));
  };
  Term kept = cell * gate("f", "Sigmoid");
  Term entry = gate("i", "Sigmoid");
  Term added = entry * gate("c", "Tanh");
  Term next = kept + added;
  Term squashed = operate("Tanh", next);
  return {next, squashed * gate("o", "Sigmoid")};
}

const NamedShapes lstm_shapes = {{"input", "N, 1, d_in"}, {"w_i", "d_hid, d_sum"}, {"w_f", "d_hid, d_sum"},
                                 {"w_c", "d_hid, d_sum"}, {"w_o", "d_hid, d_sum"}, {"bias_f", "d_hid"},
                                 {"bias_i", "d_hid"},     {"bias_c", "d_hid"},     {"bias_o", "d_hid"}};

Model lstm_cell(const Arguments& a) {
  Builder b(a);
  Term input = b.input("input"), prev_hidden = b.input("prev_hidden"), prev_cell = b.input("prev_cell");
  Rows hidden = rows_of(b, prev_hidden, input), cell = rows_of(b, prev_cell, input);
  Gates gates = lstm_gates(b, input, hidden.first, cell.first);
  b.output("hidden", gates.hidden);
  b.output("cell", gates.cell);
  b.output("hidden_compl", hidden.rest);
  Term weight = b.weight("w_out"), bias = b.weight("bias_out");
  b.output("output", linear(b, gates.hidden, weight, bias));
  NamedShapes shapes = lstm_shapes;
  for (const auto& shape : NamedShapes{{"prev_hidden", "M, 1, d_hid"},
                                       {"prev_cell", "M, 1, d_hid"},
                                       {"w_out", "d_out, d_hid"},
                                       {"bias_out", "d_out"},
                                       {"hidden", "N, 1, d_hid"},
                                       {"cell", "N, 1, d_hid"}}) {
    shapes.push_back(shape);
  }
  b.shapes(shapes);
  return b.finish({"input"}, {"output"});
}

// The cell state stacked above the hidden state.
Model lstm_body(const Arguments& a) {
  Builder b(a);
  Term input = b.input("input"), hidden = b.input("prev_hidden"), cell = b.input("prev_cell");
  Gates gates = lstm_gates(b, input, hidden, cell);
  b.output("output",
           b.add("Concat", {{"axis", 0}}, {{"input", Term(Value(List{gates.cell.value(), gates.hidden.value()}))}}));
  NamedShapes shapes = lstm_shapes;
  shapes.emplace_back("prev_hidden", "N, 1, d_hid");
  shapes.emplace_back("prev_cell", "N, 1, d_hid");
  b.shapes(shapes);
  return b.finish({"input"}, {"output"});
}

// z = sigmoid, r = sigmoid, candidate = tanh(W x + r * (U h)); the state interpolates between old one and candidate.
Model gru_cell(const Arguments& a) {
  Builder b(a);
  Term input = b.input("input"), state = b.input("prev_hidden");
  Rows rows = rows_of(b, state, input);
  auto part = [&](const std::string& name, const Term& hidden) {
    Term w = b.weight("w_i" + name), u = b.weight("w_h" + name), bias = b.weight("bias_" + name);
    Term seen = linear(b, input, w, bias);
    return seen + linear(b, hidden, u);
  };
  Term update = operate("Sigmoid", part("z", rows.first)), reset = operate("Sigmoid", part("r", rows.first));
  Term w = b.weight("w_in"), u = b.weight("w_hn"), bias = b.weight("bias_n");
  Term seen = linear(b, input, w, bias);
  Term candidate = operate("Tanh", seen + reset * linear(b, rows.first, u));
  Term hidden = candidate + update * (rows.first - candidate);
  b.output("hidden", hidden);
  b.output("hidden_compl", rows.rest);
  Term w_ho = b.weight("w_ho"), bias_o = b.weight("bias_o");
  b.output("output", linear(b, hidden, w_ho, bias_o));
  NamedShapes shapes = {{"input", "N, 1, d_in"},
                        {"prev_hidden", "M, 1, d_hid"},
                        {"w_ho", "d_out, d_hid"},
                        {"bias_o", "d_out"},
                        {"hidden", "N, 1, d_hid"}};
  for (const char* name : {"z", "r", "n"}) {
    shapes.emplace_back(concat("w_i", name), "d_hid, d_in");
    shapes.emplace_back(concat("w_h", name), "d_hid, d_hid");
    shapes.emplace_back(concat("bias_", name), "d_hid");
  }
  b.shapes(shapes);
  return b.finish({"input"}, {"output"});
}

// ---- sequences ------------------------------------------------------------------------------------------------------

// A kind of cell: all steps share its weights, and pass on its states.
struct CellKind {
  Value specification;
  std::vector<std::string> weights, states;

  explicit CellKind(const Value& argument) {
    Model cell = model_argument(argument);
    specification = to_specification(cell);
    for (const std::string& key : cell.input_keys()) {
      if (cell.body()->generated(key) || key == "input") continue;
      if (key.starts_with("prev_"))
        states.push_back(key.substr(5));
      else
        weights.push_back(key);
    }
  }
  Model make_cell() const { return from_specification(specification); }
};

using Inputs = std::vector<std::pair<std::string, Term>>;

class Sequence {
 public:
  Sequence(Builder& builder, const Value& cell) : b(builder), kind(cell) {
    for (const std::string& key : kind.weights) weights.emplace_back(key, b.weight(key));
  }

  // One step; the first one takes initial states.
  void step(const Term& input, const std::string& output) {
    Model cell = kind.make_cell();
    Inputs inputs = weights;
    inputs.emplace_back("input", input);
    for (const std::string& state : kind.states) {
      Term previous = last ? Term(&b, (*last)[state]) : b.input("initial_" + state);
      inputs.emplace_back("prev_" + state, previous);
    }
    b.output(output, b.add(cell, inputs, "output"));
    last = cell;
  }
  Term result(const std::string& key) const { return Term(&b, (*last)[key]); }

  Builder& b;
  CellKind kind;
  Inputs weights;
  std::optional<Model> last;
};

Model one_to_many(const Arguments& a, bool inference) {
  Builder b(a);
  Sequence sequence(b, a["cell_type"]);
  int64_t steps = a["max_sequence_length"].integer();
  sequence.step(b.input("input"), "output0");
  bool forced = !inference && a.flag("teacher_forcing");
  for (int64_t i = 1; i < steps; ++i) {
    Term input = sequence.result("output");
    if (!inference) {
      // As many rows as the target of this step.
      Term target = b.input(concat("target", i));
      Term source = forced ? b.input(concat("target", i - 1)) : input;
      Term head = b.add("Slice", {}, {{"stop", index(operate("Shape", target), 0)}});
      input = b.add("Indexer", {}, {{"input", source}, {"index", head}});
    }
    sequence.step(input, concat("output", i));
  }
  return b.finish({"input"}, {concat("output", steps - 1)});
}

Model many_to_one(const Arguments& a) {
  Builder b(a);
  Sequence sequence(b, a["cell_type"]);
  int64_t steps = a["max_sequence_length"].integer();
  List ended;
  for (int64_t i = 0; i < steps; ++i) {
    sequence.step(b.input(concat("input", i)), concat("output", i));
    if (i == 0 && steps > 1) continue;
    if (i == steps - 1) ended.push_back(sequence.result("hidden").value());
    ended.push_back(sequence.result("hidden_compl").value());
  }
  b.output("hidden_concat", b.add("Concat", {{"axis", 0}}, {{"input", Term(Value(ended))}}));
  return b.finish({"input0"}, {"hidden_concat"});
}

Model encoder_decoder(const Arguments& a, bool inference) {
  Builder b(a);
  Value cell = a["cell_type"];
  if (cell.is_model()) cell = to_specification(cell.model());
  Model encoder = make("ManyToOne", {{"cell_type", cell}, {"max_sequence_length", a["max_input_sequence_length"]}});
  Entries arguments = {{"cell_type", cell}, {"max_sequence_length", a["max_target_sequence_length"]}};
  if (!inference) arguments.emplace_back("teacher_forcing", a["teacher_forcing"]);
  Model decoder = make(inference ? "OneToManyInference" : "OneToMany", arguments);
  Inputs inputs;
  for (const std::string& key : encoder.input_keys()) {
    if (!encoder.body()->generated(key)) inputs.emplace_back(key, b.input(key));
  }
  Term state = b.add(encoder, inputs, "hidden_concat");
  if (!inference) {
    Term order = b.input("indices");
    state = b.add("PermuteTensor", {}, {{"input", state}, {"indices", order}});
  }
  Inputs decoding;
  for (const std::string& key : decoder.input_keys()) {
    if (decoder.body()->generated(key)) continue;
    if (key == "initial_hidden")
      decoding.emplace_back(key, state);
    else
      decoding.emplace_back(key, b.input(key.starts_with("target") ? key : "decoder_" + key));
  }
  std::vector<std::string> outputs = decoder.output_keys();
  b.add(decoder, decoding, outputs.back());
  for (const std::string& key : outputs) b.output(key, Term(&b, decoder[key]));
  return b.finish({"input0"}, {outputs.back()});
}

}  // namespace

Records recurrent_records() {
  const char* lstm = "w_i, w_f, w_c, w_o, bias_f, bias_i, bias_c, bias_o";
  return {
      {"RNNCell", "input, w_ih, w_hh, w_ho, bias_h, bias_o", "", "One step of a recurrent network.", {}, {}, rnn_cell},
      {"LSTMCell",
       concat("input, ", lstm, ", w_out, bias_out"),
       "",
       "One step of a long short-term memory.",
       {},
       {},
       lstm_cell},
      {"LSTMCellBody",
       concat("input, prev_hidden, prev_cell, ", lstm),
       "",
       "The gates of a long short-term memory.",
       {},
       {},
       lstm_body},
      {"GRUCell", "input", "", "One step of a gated recurrent unit.", {}, {}, gru_cell},
      {"OneToMany",
       "cell_type, max_sequence_length, teacher_forcing=False, input",
       "",
       "A sequence from one input.",
       {},
       {},
       [](const Arguments& a) { return one_to_many(a, false); }},
      {"OneToManyInference",
       "cell_type, max_sequence_length, input",
       "",
       "A sequence that feeds itself.",
       {},
       {},
       [](const Arguments& a) { return one_to_many(a, true); }},
      {"ManyToOne",
       "cell_type, max_sequence_length, hidden_concat",
       "",
       "The last state of a sequence.",
       {},
       {},
       many_to_one},
      {"EncoderDecoder",
       "cell_type, max_input_sequence_length, max_target_sequence_length, teacher_forcing=False, indices",
       "",
       "A sequence from a sequence.",
       {},
       {},
       [](const Arguments& a) { return encoder_decoder(a, false); }},
      {"EncoderDecoderInference",
       "cell_type, max_input_sequence_length, max_target_sequence_length",
       "",
       "A sequence from a sequence, without targets.",
       {},
       {},
       [](const Arguments& a) { return encoder_decoder(a, true); }},
  };
}

}  // namespace capibara::models
