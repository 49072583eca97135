// capibara.training from Python: the language model, tokenizers, loaders, the trainer, generation, safetensors.
#include <capibara/lax.h>
#include <capibara/safetensors.h>
#include <capibara/training.h>

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "calls.h"
#include "training_models.h"

namespace capibara::python {

namespace {

using namespace capibara::training;

std::string bytes_of(nb::handle text) {
  if (PyUnicode_Check(text.ptr())) return nb::cast<std::string>(text);
  if (PyBytes_Check(text.ptr())) {
    const nb::bytes bytes = nb::borrow<nb::bytes>(text);
    return std::string(bytes.c_str(), bytes.size());
  }
  throw TypeError("Tokenizer: text is str or bytes");
}

// Parses a config, which Python passes as JSON text.
RunConfig config_of(const std::string& json) { return run_config_from_json(json, "config"); }

void bind_model(nb::module_& m) {
  nb::class_<LanguageModel>(m, "LanguageModel", "A language model of mixed layers.")
      .def_static("from_json", [](const std::string& json) { return LanguageModel(config_of(json).model); })
      .def("to_json",
           [](const LanguageModel& model) {
             RunConfig config;
             config.model = model.config();
             return to_json(config);
           })
      .def(
          "init",
          [](const LanguageModel& model, nb::handle key) { return wrap_parameters(model.init(to_array(key, "init"))); },
          nb::arg("key"), "Random parameters in float32, from one key.")
      .def(
          "apply",
          [](const LanguageModel& model, nb::handle parameters, nb::handle tokens) {
            return wrap(model.apply(parameters_of(parameters, "apply"), to_array(tokens, "apply")));
          },
          nb::arg("params"), nb::arg("tokens"), "Logits [batch, length, vocabulary] of tokens [batch, length].")
      .def(
          "loss",
          [](const LanguageModel& model, nb::handle parameters, nb::handle tokens) {
            return wrap(model.loss(parameters_of(parameters, "loss"), to_array(tokens, "loss")));
          },
          nb::arg("params"), nb::arg("tokens"),
          "The mean cross entropy of tokens [batch, length + 1], in nats, plus the load of experts.")
      .def(
          "cross_entropy",
          [](const LanguageModel& model, nb::handle parameters, nb::handle tokens) {
            return wrap(
                model.cross_entropy(parameters_of(parameters, "cross_entropy"), to_array(tokens, "cross_entropy")));
          },
          nb::arg("params"), nb::arg("tokens"), "The mean cross entropy alone.")
      .def(
          "first_bad_layer",
          [](const LanguageModel& model, nb::handle parameters, nb::handle tokens) {
            return model.first_bad_layer(parameters_of(parameters, "first_bad_layer"),
                                         to_array(tokens, "first_bad_layer"));
          },
          nb::arg("params"), nb::arg("tokens"), "The name of the first result that is not finite; empty where all are.")
      .def(
          "shapes",
          [](const LanguageModel& model) {
            nb::dict shapes;
            for (const auto& [name, shape] : model.shapes()) shapes[name.c_str()] = int_tuple(shape);
            return shapes;
          },
          "The shape of each parameter.")
      .def_prop_ro("parameter_count", &LanguageModel::parameter_count)
      .def("flops_per_token", &LanguageModel::flops_per_token, nb::arg("length"))
      .def("with_checkpointing", [](const LanguageModel& model, int64_t every, const std::string& policy) {
        return enable_gradient_checkpointing(model, every, policy);
      });
  m.def(
      "convert_weights",
      [](nb::handle parameters, const std::string& weights) {
        return wrap_parameters(convert_weights(parameters_of(parameters, "convert_weights"), weights));
      },
      nb::arg("params"), nb::arg("weights"),
      "Parameters with weights in 'float32', 'bfloat16', 'int8', 'int4' or 'vq': codes, which matmuls read directly.");
  m.def(
      "activation_scales",
      [](const AnyModel& model, nb::handle parameters, nb::handle next, int64_t batches, double percentile,
         const std::string& function) {
        CalibrationLoader loader;
        if (!next.is_none()) {
          loader = [next]() -> std::optional<Arrays> {
            const nb::object batch = call_python(next, nb::make_tuple());
            if (batch.is_none()) return std::nullopt;
            return batch_of(batch, "quantize_activations");
          };
        }
        return wrap_parameters(activation_scales(model, parameters_of(parameters, "quantize_activations"), loader,
                                                 {.batches = batches, .percentile = percentile, .function = function}));
      },
      nb::arg("model"), nb::arg("params"), nb::arg("next").none(), nb::arg("batches"), nb::arg("percentile"),
      nb::arg("function"));
  m.def("save_weights", [](const std::string& path, nb::handle parameters) {
    save_weights(path, parameters_of(parameters, "save_weights"));
  });
  m.def("load_weights", [](const std::string& path) { return wrap_parameters(load_weights(path)); });
  nb::class_<Generator>(m, "Generator", "Generates tokens with a cache of keys and values.")
      .def(
          "__init__",
          [](Generator* self, const LanguageModel& model, nb::handle parameters, int64_t capacity) {
            new (self) Generator(model, parameters_of(parameters, "Generator"), capacity);
          },
          nb::arg("model"), nb::arg("params"), nb::arg("capacity") = 1024)
      .def(
          "generate",
          [](const Generator& generator, const std::vector<int32_t>& prompt, int64_t max_new_tokens, double temperature,
             int64_t top_k, uint64_t seed, const std::vector<int32_t>& stop) {
            nb::gil_scoped_release other_threads_run;
            return generator.generate(prompt, {max_new_tokens, temperature, top_k, seed, stop});
          },
          nb::arg("prompt"), nb::arg("max_new_tokens") = 100, nb::arg("temperature") = 0.0, nb::arg("top_k") = 0,
          nb::arg("seed") = 0, nb::arg("stop") = std::vector<int32_t>(), "The tokens that follow the prompt.");
  m.def(
      "load_pretrained",
      [](const std::string& folder) {
        auto [model, parameters] = load_pretrained(folder);
        return nb::make_tuple(model, wrap_parameters(parameters));
      },
      nb::arg("folder"),
      "The model and parameters of a folder with model.safetensors and config.json, of GPT-2's or Llama's shape.");
  m.def("default_config", [] { return to_json(RunConfig{}); });
}

void bind_data(nb::module_& m) {
  nb::class_<Tokenizer>(m, "Tokenizer", "Bytes and merged pairs of them.")
      .def(
          "__init__", [](Tokenizer* self, const Tokenizer::Merges& merges) { new (self) Tokenizer(merges); },
          nb::arg("merges") = Tokenizer::Merges())
      .def_static(
          "train", [](nb::handle text, int64_t vocabulary) { return Tokenizer::train(bytes_of(text), vocabulary); },
          nb::arg("text"), nb::arg("vocabulary"), "Byte-level BPE of a text.")
      .def_prop_ro("vocabulary", &Tokenizer::vocabulary)
      .def_prop_ro("merges", &Tokenizer::merges)
      .def(
          "encode", [](const Tokenizer& tokenizer, nb::handle text) { return tokenizer.encode(bytes_of(text)); },
          nb::arg("text"))
      .def(
          "decode",
          [](const Tokenizer& tokenizer, const std::vector<int32_t>& tokens) {
            const std::string text = tokenizer.decode(tokens);
            return nb::bytes(text.data(), text.size());
          },
          nb::arg("tokens"), "The bytes of tokens.")
      .def("save", &Tokenizer::save, nb::arg("path"))
      .def_static("load", &Tokenizer::load, nb::arg("path"));
  nb::class_<PublishedTokenizer>(m, "PublishedTokenizer",
                                 "The tokenizer of a published model, from its tokenizer.json.")
      .def_static("load", &PublishedTokenizer::load, nb::arg("path"), "Reads a tokenizer.json.")
      .def_prop_ro("vocabulary", &PublishedTokenizer::vocabulary)
      .def(
          "encode",
          [](const PublishedTokenizer& tokenizer, nb::handle text, bool add_special) {
            return tokenizer.encode(bytes_of(text), add_special);
          },
          nb::arg("text"), nb::arg("add_special") = true)
      .def(
          "decode",
          [](const PublishedTokenizer& tokenizer, const std::vector<int32_t>& tokens) {
            const std::string text = tokenizer.decode(tokens);
            return nb::bytes(text.data(), text.size());
          },
          nb::arg("tokens"), "The bytes of tokens, without special ones.")
      .def(
          "find", [](const PublishedTokenizer& tokenizer, const std::string& token) { return tokenizer.find(token); },
          nb::arg("token"), "The number of a special token, or None.");
  m.def(
      "split_words",
      [](nb::handle text) {
        nb::list words;
        const std::string bytes = bytes_of(text);
        for (std::string_view word : split_words(bytes)) words.append(nb::bytes(word.data(), word.size()));
        return words;
      },
      nb::arg("text"), "The words that pairs do not cross.");
  nb::class_<TokenFile>(m, "TokenFile", "Tokens of one or two bytes each in a mapped file.")
      .def(nb::init<const std::string&, int>(), nb::arg("path"), nb::arg("width"))
      .def("__len__", &TokenFile::size)
      .def("__getitem__", [](const TokenFile& tokens, int64_t position) {
        if (position < 0) position += tokens.size();
        if (position < 0 || position >= tokens.size()) throw nb::index_error("position out of range");
        return tokens[position];
      });
  m.def(
      "write_tokens",
      [](const std::string& texts, const Tokenizer& tokenizer, const std::string& path) {
        nb::gil_scoped_release others;  // an object store may be slow
        return write_tokens(text_files(texts), tokenizer, path);
      },
      nb::arg("texts"), nb::arg("tokenizer"), nb::arg("path"),
      "Encodes a file or folder of text; the bytes of a token.");
  m.def(
      "read_texts",
      [](const std::string& path) {
        std::string all;
        {
          nb::gil_scoped_release others;
          for (const std::string& file : text_files(path)) all += read_text(file);
        }
        return nb::bytes(all.data(), all.size());
      },
      nb::arg("path"), "The bytes of a file, of the files of a folder, or of objects (gs://).");
  nb::class_<Loader>(m, "Loader", "Batches int32 [batch, length + 1], of which each follows from its number.")
      .def(
          "__init__",
          [](Loader* self, const TokenFile& tokens, int64_t batch, int64_t length, int64_t first, int64_t last,
             uint64_t seed, int64_t next, int64_t num_workers) {
            new (self) Loader(tokens, {batch, length, first, last, seed, num_workers}, next);
          },
          nb::arg("tokens"), nb::arg("batch") = 8, nb::arg("length") = 128, nb::arg("first") = 0, nb::arg("last") = -1,
          nb::arg("seed") = 0, nb::arg("next") = 0, nb::arg("num_workers") = 1)
      .def(
          "next", [](Loader& loader) { return wrap(loader.next()); }, "The next batch.")
      .def(
          "batch", [](const Loader& loader, int64_t number) { return wrap(loader.batch(number)); }, nb::arg("number"))
      .def_prop_ro("position", &Loader::position)
      .def_prop_ro("windows", &Loader::windows);
  m.def(
      "bigram_bits_per_byte",
      [](nb::handle training, nb::handle held_out) {
        return bigram_bits_per_byte(bytes_of(training), bytes_of(held_out));
      },
      nb::arg("training"), nb::arg("held_out"), "Bits per byte of a bigram model with one added to each count.");
}

nb::dict report_of(const StepReport& report) {
  nb::dict result;
  result["step"] = report.step;
  result["loss"] = report.loss;
  result["norm"] = report.norm;
  result["skipped"] = report.skipped;
  result["seconds"] = report.seconds;
  return result;
}

// A Python function called by threads of the core, any of which may release the last reference.
std::shared_ptr<nb::object> shared_function(nb::handle function) {
  return {new nb::object(nb::borrow(function)), [](nb::object* held) {
            nb::gil_scoped_acquire interpreter;
            delete held;
          }};
}

// The destructor releases the GIL, since it joins threads that may be waiting for the GIL.
struct NativeBatches {
  explicit NativeBatches(BatchLoader&& made) : loader(std::move(made)) {}
  ~NativeBatches() {
    nb::gil_scoped_release other_threads_run;
    loader.reset();
  }
  std::optional<BatchLoader> loader;
};

void bind_batches(nb::module_& m) {
  using Options = std::tuple<int64_t, bool, uint64_t, int64_t, int64_t>;
  auto options_of = [](const Options& o) {
    return BatchLoaderOptions{std::get<0>(o), std::get<1>(o), std::get<2>(o), std::get<3>(o), std::get<4>(o)};
  };
  nb::class_<NativeBatches>(m, "NativeBatches", "Batches made ahead by threads.")
      .def_static("arrays",
                  [=](nb::handle arrays, const Options& options, int64_t next) {
                    return std::make_unique<NativeBatches>(
                        BatchLoader(array_examples(batch_of(arrays, "DataLoader")), options_of(options), next));
                  })
      .def_static("npy",
                  [=](const std::vector<std::string>& paths, const Options& options, int64_t next) {
                    return std::make_unique<NativeBatches>(BatchLoader(npy_examples(paths), options_of(options), next));
                  })
      .def_static(
          "safetensors",
          [=](const std::string& path, const std::vector<std::string>& names, const Options& options, int64_t next) {
            return std::make_unique<NativeBatches>(
                BatchLoader(safetensors_examples(path, names), options_of(options), next));
          })
      .def_static("examples",
                  [=](int64_t count, nb::handle read, const Options& options, int64_t next) {
                    Examples examples;
                    examples.count = count;
                    examples.read = [function = shared_function(read)](std::span<const int64_t> numbers) {
                      nb::gil_scoped_acquire interpreter;
                      nb::list list;
                      for (int64_t number : numbers) list.append(number);
                      return batch_of((*function)(list), "DataLoader");
                    };
                    return std::make_unique<NativeBatches>(BatchLoader(std::move(examples), options_of(options), next));
                  })
      .def_static(
          "stream",
          [=](nb::handle read, const Options& options, int64_t next) {
            auto stream = [function = shared_function(read)]() -> std::optional<Arrays> {
              nb::gil_scoped_acquire interpreter;
              const nb::object batch = (*function)();
              if (batch.is_none()) return std::nullopt;
              return batch_of(batch, "DataLoader");
            };
            return std::make_unique<NativeBatches>(BatchLoader(BatchLoader::Stream(stream), options_of(options), next));
          })
      .def("next",
           [](NativeBatches& self) -> nb::object {
             std::optional<Arrays> batch;
             {
               nb::gil_scoped_release other_threads_run;
               batch = self.loader->next();
             }
             if (!batch) return nb::none();
             nb::list list;
             for (const Array& array : *batch) list.append(wrap(array));
             return list;
           })
      .def_prop_ro("position", [](const NativeBatches& self) { return self.loader->position(); })
      .def_prop_ro("batches", [](const NativeBatches& self) { return self.loader->batches(); });
}

nb::dict bytes_of_mesh(const MeshBytes& bytes, bool gradients) {
  nb::dict result;
  result["parameters"] = bytes.parameters;
  result["optimizer"] = bytes.optimizer;
  if (gradients) result["gradients"] = bytes.gradients;
  return result;
}

nb::dict table_of(const ShardingTable& table) {
  nb::dict result;
  for (const ParameterSharding& parameter : table.parameters) {
    nb::list entries;
    for (const AxisList& axes : parameter.spec.dims) {
      nb::list names;
      for (const std::string& axis : axes) names.append(axis);
      entries.append(nb::tuple(names));
    }
    result[parameter.name.c_str()] = nb::make_tuple(nb::tuple(entries), parameter.bytes, parameter.why);
  }
  return result;
}

void bind_trainer(nb::module_& m) {
  nb::class_<Trainer>(m, "NativeTrainer", "One compiled step, checkpoints and exact resumption.")
      .def("__init__",
           [](Trainer* self, const AnyModel& model, const std::string& json, const std::string& folder) {
             TrainerConfig config = config_of(json).trainer;
             config.folder = folder;
             new (self) Trainer(model, config);
           })
      .def("step",
           [](Trainer& trainer, nb::handle arrays) {
             const Arrays batch = batch_of(arrays, "step");
             StepReport report;
             {
               nb::gil_scoped_release other_threads_run;
               report = trainer.step(batch);
             }
             return report_of(report);
           })
      .def("evaluate",
           [](const Trainer& trainer, nb::handle arrays) { return trainer.evaluate(batch_of(arrays, "evaluate")); })
      .def("gradient",
           [](const Trainer& trainer, nb::handle arrays) {
             return wrap_parameters(trainer.gradient(batch_of(arrays, "gradient")));
           })
      .def("sharding",
           [](const Trainer& trainer) -> nb::object {
             const ShardingTable* table = trainer.sharding();
             if (!table) return nb::none();
             return nb::make_tuple(table->text(), table_of(*table));
           })
      .def(
          "device_bytes",
          [](const Trainer& trainer, nb::handle gradients) {
            nb::dict result;
            const bool given = !gradients.is_none();
            result["planned"] = bytes_of_mesh(trainer.planned_bytes(), true);
            result["held"] = bytes_of_mesh(
                trainer.held_bytes(given ? parameters_of(gradients, "device_bytes") : Parameters{}), given);
            return result;
          },
          nb::arg("gradients").none())
      .def("save", &Trainer::save)
      .def("resume", &Trainer::resume)
      .def_prop_ro("steps_done", &Trainer::steps_done)
      .def_prop_ro("learning_rate", &Trainer::learning_rate)
      // Copies, since the next step donates its parameters.
      .def_prop_ro("parameters",
                   [](const Trainer& trainer) {
                     Parameters copies;
                     for (const auto& [name, array] : trainer.parameters()) copies[name] = jax::lax::copy(array);
                     return wrap_parameters(copies);
                   })
      .def("set_parameters", [](Trainer& trainer, nb::handle parameters) {
        trainer.set_parameters(parameters_of(parameters, "set_parameters"));
      });
}

}  // namespace

void bind_training(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("training", "Language models, their data and their training.");
  bind_training_models(m);
  bind_model(m);
  bind_data(m);
  bind_batches(m);
  bind_trainer(m);
  m.def(
      "parse_mesh", [](const std::string& text) { return to_string(training_mesh_from_text(text)); }, nb::arg("text"));
  m.def(
      "load_safetensors", [](const std::string& path) { return wrap_parameters(load_safetensors(path)); },
      nb::arg("path"));
  m.def(
      "safetensors_metadata", [](const std::string& path) { return SafetensorsFile(path).metadata(); },
      nb::arg("path"));
  m.def(
      "save_safetensors",
      [](const std::string& path, nb::handle arrays, const std::map<std::string, std::string>& metadata) {
        save_safetensors(path, parameters_of(arrays, "save_safetensors"), metadata);
      },
      nb::arg("path"), nb::arg("arrays"), nb::arg("metadata") = std::map<std::string, std::string>());
}

}  // namespace capibara::python
