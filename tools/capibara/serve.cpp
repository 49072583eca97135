// capibara serve: completions and chat over HTTP, in the form of OpenAI's interface.
#include <capibara/error.h>
#include <capibara/training.h>
#include <capibara/training/serving.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <thread>

#include "command.h"
#include "io/files/json.h"
#include "models/serving/unicode.h"
#include "operate/monitor/server.h"
#include "training/commands.h"

namespace capibara::command {

namespace {

using Clock = std::chrono::steady_clock;

// ---- models ------------------------------------------------------------------------------------------------------

// A model with the functions of its tokenizer.
struct ServedModel {
  std::string name;
  training::LanguageModel model;
  training::Parameters parameters;
  std::function<std::vector<int32_t>(const std::string& text, bool add_special)> encode;
  std::function<std::string(int32_t token)> bytes;
  std::function<std::optional<int32_t>(std::string_view token)> find;  // a special token
};

ServedModel open_run(const std::string& folder) {
  const training::TrainingRun run = training::TrainingRun::open(folder);
  const auto tokenizer = std::make_shared<const training::Tokenizer>(run.tokenizer());
  return {"",
          run.model(),
          trained(run).parameters(),
          [tokenizer](const std::string& text, bool) { return tokenizer->encode(text); },
          [tokenizer](int32_t token) { return tokenizer->decode(std::span(&token, 1)); },
          [](std::string_view) { return std::nullopt; }};
}

ServedModel open_published(const std::string& folder) {
  const auto tokenizer = std::make_shared<const training::PublishedTokenizer>(
      training::PublishedTokenizer::load(folder + "/tokenizer.json"));
  auto [model, parameters] = training::load_pretrained(folder);
  if (tokenizer->vocabulary() > model.config().vocabulary) {
    throw ValueError(concat("serve: the tokenizer of ", folder, " has tokens up to ", tokenizer->vocabulary() - 1,
                            ", but the model has ", model.config().vocabulary));
  }
  return {"",
          std::move(model),
          std::move(parameters),
          [tokenizer](const std::string& text, bool special) { return tokenizer->encode(text, special); },
          [tokenizer](int32_t token) { return tokenizer->bytes(token); },
          [tokenizer](std::string_view token) { return tokenizer->find(token); }};
}

ServedModel open_model(const std::string& folder) {
  const bool published = std::filesystem::exists(std::filesystem::path(folder) / "tokenizer.json");
  ServedModel served = published ? open_published(folder) : open_run(folder);
  served.name = std::filesystem::weakly_canonical(folder).filename().string();
  return served;
}

// ---- requests ----------------------------------------------------------------------------------------------------

// An error of a request, in OpenAI's form.
struct Refusal {
  int status;
  std::string message, param;
  const char* kind = "invalid_request_error";
};

HttpAnswer refusal_answer(const Refusal& refusal) {
  Json::Object error{{"message", refusal.message}, {"type", refusal.kind}, {"code", Json()}};
  error["param"] = refusal.param.empty() ? Json() : Json(refusal.param);
  return {refusal.status, "application/json", Json(Json::Object{{"error", std::move(error)}}).dump() + "\n"};
}

// The members of a request's body, each of which must be read by the time of finish().
class Fields {
 public:
  explicit Fields(const std::string& body) {
    try {
      root_ = Json::parse(body, "the body");
    } catch (const Error& error) {
      throw Refusal{400, error.what(), ""};
    }
    if (!root_.object()) throw Refusal{400, "expected the body to be a JSON object", ""};
  }

  // Null if it is missing or null.
  const Json* take(const std::string& name) {
    read_.push_back(name);
    const Json* found = root_.find(name);
    return found && !found->is_null() ? found : nullptr;
  }
  double real(const std::string& name, double otherwise, double least, double most) {
    const Json* found = take(name);
    if (!found) return otherwise;
    const std::optional<double> value = found->number();
    if (!value || !(*value >= least && *value <= most))
      refuse(name, concat("a number from ", least, " to ", most), *found);
    return *value;
  }
  int64_t whole(const std::string& name, int64_t otherwise, int64_t least, int64_t most) {
    const Json* found = take(name);
    if (!found) return otherwise;
    if (!found->integer() || *found->integer() < least || *found->integer() > most)
      refuse(name, concat("an integer from ", least, " to ", most), *found);
    return *found->integer();
  }
  bool truth(const std::string& name, bool otherwise) {
    const Json* found = take(name);
    if (!found) return otherwise;
    if (!found->boolean()) refuse(name, "true or false", *found);
    return *found->boolean();
  }
  // Refuses any value but the one that changes nothing.
  void require_if_given(const std::string& name, const Json& neutral) {
    const Json* found = take(name);
    if (found && *found != neutral) refuse(name, concat("nothing but ", neutral.dump()), *found);
  }
  [[noreturn]] static void refuse(const std::string& name, const std::string& expected, const Json& got) {
    std::string shown = got.dump();
    if (shown.size() > 60) shown = shown.substr(0, whole_characters(shown.substr(0, 57))) + "...";
    throw Refusal{400, concat("'", name, "': expected ", expected, ", got ", shown), name};
  }
  void finish() const {
    for (const auto& [name, value] : *root_.object()) {
      if (!value.is_null() && std::find(read_.begin(), read_.end(), name) == read_.end())
        throw Refusal{400, concat("'", name, "' is not supported by capibara serve"), name};
    }
  }

 private:
  Json root_;
  std::vector<std::string> read_;
};

struct Limits {
  int64_t capacity, max_tokens;
  double seconds;
};

struct Completion {
  bool chat = false, stream = false, with_usage = false, echo = false;
  std::string prompt;  // the text of it, for echo
  std::vector<int32_t> tokens;
  int64_t max_tokens = 0;
  training::SamplingOptions sampling;
  std::vector<std::string> stop;
};

// The text of a chat: in the form of Llama 3 or ChatML if the tokenizer has their tokens, else as lines "role: text".
struct ChatForm {
  const char *before_role, *after_role, *after_text, *end;  // end: the token that ends an answer
};
constexpr ChatForm llama3_form = {"<|start_header_id|>", "<|end_header_id|>\n\n", "<|eot_id|>", "<|eot_id|>"};
constexpr ChatForm chatml_form = {"<|im_start|>", "\n", "<|im_end|>\n", "<|im_end|>"};
constexpr ChatForm plain_form = {"", ": ", "\n", nullptr};

const ChatForm& chat_form(const ServedModel& served) {
  for (const ChatForm* form : {&llama3_form, &chatml_form}) {
    if (served.find(form->before_role) && served.find(form->end)) return *form;
  }
  return plain_form;
}

std::string chat_text(const ServedModel& served, const Json& messages) {
  const ChatForm& form = chat_form(served);
  if (!messages.list() || messages.list()->empty())
    Fields::refuse("messages", "a list of one message or more", messages);
  std::string text;
  for (const Json& message : *messages.list()) {
    const Json *role = message.find("role"), *content = message.find("content");
    if (!role || !role->text() || !content) Fields::refuse("messages", "messages with 'role' and 'content'", message);
    std::string own;
    if (content->text()) own = *content->text();
    for (const Json& part : content->list() ? *content->list() : Json::List()) {
      const Json* piece = part.find("text");
      if (!piece || !piece->text()) Fields::refuse("messages", "parts of type 'text'", part);
      own += *piece->text();
    }
    if (!content->text() && !content->list()) Fields::refuse("messages", "a string or a list of parts", *content);
    text += concat(form.before_role, *role->text(), form.after_role, own, form.after_text);
  }
  return concat(text, form.before_role, "assistant", form.after_role);
}

void read_prompt(const ServedModel& served, const Json* given, Completion& completion) {
  if (!given) throw Refusal{400, "'prompt' is missing", "prompt"};
  const Json* prompt = given;
  // A list of one prompt is that prompt.
  if (given->list() && given->list()->size() == 1 && !given->list()->front().integer())
    prompt = &given->list()->front();
  if (prompt->text()) {
    completion.prompt = *prompt->text();
    completion.tokens = served.encode(completion.prompt, true);
    return;
  }
  if (!prompt->list() || prompt->list()->empty()) Fields::refuse("prompt", "one string or one list of tokens", *given);
  for (const Json& token : *prompt->list()) {
    if (!token.integer() || *token.integer() < 0 || *token.integer() >= served.model.config().vocabulary)
      Fields::refuse("prompt", concat("one string or one list of tokens below ", served.model.config().vocabulary),
                     *given);
    completion.tokens.push_back(static_cast<int32_t>(*token.integer()));
    completion.prompt += served.bytes(completion.tokens.back());
  }
}

Completion read_request(const ServedModel& served, const Limits& limits, const HttpCall& call, bool chat) {
  Fields fields(call.body);
  Completion completion;
  completion.chat = chat;
  if (const Json* model = fields.take("model"); model && (!model->text() || *model->text() != served.name))
    throw Refusal{404, concat("the model ", model->dump(), " does not exist; there is '", served.name, "'"), "model"};
  if (chat) {
    const Json* messages = fields.take("messages");
    if (!messages) throw Refusal{400, "'messages' is missing", "messages"};
    completion.prompt = chat_text(served, *messages);
    completion.tokens = served.encode(completion.prompt, true);
  } else {
    read_prompt(served, fields.take("prompt"), completion);
    completion.echo = fields.truth("echo", false);
  }
  const auto length = static_cast<int64_t>(completion.tokens.size());
  if (length == 0) throw Refusal{400, "the prompt has no tokens", chat ? "messages" : "prompt"};
  if (length >= limits.capacity) {
    throw Refusal{400,
                  concat("the prompt has ", length, " tokens; this server keeps ", limits.capacity,
                         " of prompt and answer together"),
                  chat ? "messages" : "prompt"};
  }
  const int64_t most = std::min(limits.max_tokens, limits.capacity - length);
  const int64_t standard = std::min<int64_t>(chat ? most : 16, most);
  completion.max_tokens = fields.whole("max_tokens", standard, 1, 1 << 30);
  completion.max_tokens = std::min(fields.whole("max_completion_tokens", completion.max_tokens, 1, 1 << 30), most);
  completion.sampling.temperature = fields.real("temperature", 1, 0, 100);
  completion.sampling.top_p = fields.real("top_p", 1, 1e-9, 1);
  completion.sampling.top_k = fields.whole("top_k", 0, 0, 1 << 30);
  completion.sampling.min_p = fields.real("min_p", 0, 0, 1);
  static std::atomic<uint64_t> next_seed{static_cast<uint64_t>(std::time(nullptr))};
  completion.sampling.seed =
      static_cast<uint64_t>(fields.whole("seed", static_cast<int64_t>(next_seed++), INT64_MIN, INT64_MAX));
  completion.stream = fields.truth("stream", false);
  if (const Json* options = fields.take("stream_options")) {
    const Json* usage = options->find("include_usage");
    completion.with_usage = usage && usage->boolean() && *usage->boolean();
  }
  if (const Json* stop = fields.take("stop")) {
    const Json::List texts = stop->list() ? *stop->list() : Json::List{*stop};
    for (const Json& text : texts) {
      if (!text.text() || text.text()->empty() || texts.size() > 4)
        Fields::refuse("stop", "a string, or a list of up to four", *stop);
      completion.stop.push_back(*text.text());
    }
  }
  // Values that change nothing are accepted; others are refused by name.
  fields.whole("n", 1, 1, 1);
  fields.whole("best_of", 1, 1, 1);
  for (const char* name : {"frequency_penalty", "presence_penalty"}) fields.real(name, 0, 0, 0);
  if (fields.truth("logprobs", false)) throw Refusal{400, "'logprobs' is not supported by capibara serve", "logprobs"};
  fields.require_if_given("logit_bias", Json::Object{});
  fields.require_if_given("tools", Json::List{});
  fields.require_if_given("response_format", Json::Object{{"type", "text"}});
  fields.take("user");
  fields.finish();
  return completion;
}

// ---- answers -----------------------------------------------------------------------------------------------------

// One answer while it is generated: holds back what may become a stop text, or half a character.
class Answer {
 public:
  Answer(const ServedModel& served, Completion completion, std::shared_ptr<HttpReply> reply, Clock::time_point deadline)
      : served_(served), completion_(std::move(completion)), reply_(std::move(reply)), deadline_(deadline) {
    static std::atomic<uint64_t> count{0};
    static const auto start = static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
    id_ = concat(completion_.chat ? "chatcmpl-" : "cmpl-", start, "-", ++count);
    created_ = static_cast<int64_t>(std::time(nullptr));
    if (completion_.echo) text_ = completion_.prompt, searched_ = sent_ = 0, begin_ = text_.size();
  }

  // False if the text is complete.
  bool add(int32_t token) {
    ++tokens_;
    text_ += served_.bytes(token);
    for (const std::string& stop : completion_.stop) {
      const std::size_t from = std::max(begin_, searched_ < stop.size() ? 0 : searched_ - stop.size());
      const std::size_t found = text_.find(stop, from);
      if (found == std::string::npos) continue;
      text_.resize(found);
      return false;
    }
    searched_ = text_.size();
    if (completion_.stream) send_piece(text_.size() - held_back());
    timed_out_ = Clock::now() > deadline_;
    return !timed_out_ && !reply_->gone();
  }

  void end(training::ServingRequest::End how, const std::string& error) {
    using End = training::ServingRequest::End;
    if (how == End::failed || how == End::cancelled) {
      const Refusal refusal = how == End::failed ? Refusal{500, error, "", "server_error"}
                                                 : Refusal{503, "the server is stopping", "", "server_error"};
      const HttpAnswer answer = refusal_answer(refusal);
      if (!reply_->begun()) return reply_->send(answer);
      reply_->write(concat("data: ", answer.body, "\n"));
      return reply_->end();
    }
    const char* reason = how == End::length || timed_out_ ? "length" : "stop";
    if (!completion_.stream) return reply_->send({200, "application/json", whole(reason) + "\n"});
    send_piece(text_.size());
    send_event(chunk(completion_.chat ? Json(Json::Object{}) : Json(""), reason));
    if (completion_.with_usage) {
      Json::Object last = head(true);
      last["choices"] = Json::List{};
      last["usage"] = usage();
      send_event(Json(std::move(last)));
    }
    reply_->write("data: [DONE]\n\n");
    reply_->end();
  }

  bool abandoned() const { return reply_->gone(); }
  int64_t tokens() const { return tokens_; }

 private:
  // Bytes at the end that may begin a stop text or a character.
  std::size_t held_back() const {
    std::size_t held = text_.size() - whole_characters(text_);
    for (const std::string& stop : completion_.stop) {
      for (std::size_t length = std::min(stop.size() - 1, text_.size()); length > held; --length) {
        if (text_.ends_with(std::string_view(stop).substr(0, length))) held = length;
      }
    }
    return held;
  }

  void send_piece(std::size_t end) {
    if (!started_) {
      started_ = true;
      reply_->begin("text/event-stream");
      if (completion_.chat) send_event(chunk(Json(Json::Object{{"role", "assistant"}, {"content", ""}}), nullptr));
    }
    if (end <= sent_) return;
    const std::string piece = repaired_utf8(std::string_view(text_).substr(sent_, end - sent_));
    sent_ = end;
    send_event(chunk(completion_.chat ? Json(Json::Object{{"content", piece}}) : Json(piece), nullptr));
  }

  void send_event(const Json& event) { reply_->write(concat("data: ", event.dump(), "\n\n")); }

  Json::Object head(bool piece) const {
    return {{"id", id_},
            {"object", !completion_.chat ? "text_completion"
                       : piece           ? "chat.completion.chunk"
                                         : "chat.completion"},
            {"created", created_},
            {"model", served_.name}};
  }
  Json usage() const {
    const auto prompt = static_cast<int64_t>(completion_.tokens.size());
    return Json::Object{{"prompt_tokens", prompt}, {"completion_tokens", tokens_}, {"total_tokens", prompt + tokens_}};
  }
  Json chunk(Json content, const char* reason) const {
    Json::Object choice{{"index", 0}, {"logprobs", Json()}, {"finish_reason", reason ? Json(reason) : Json()}};
    choice[completion_.chat ? "delta" : "text"] = std::move(content);
    Json::Object event = head(true);
    event["choices"] = Json::List{Json(std::move(choice))};
    return event;
  }
  std::string whole(const char* reason) const {
    Json::Object choice{{"index", 0}, {"logprobs", Json()}, {"finish_reason", reason}};
    if (completion_.chat)
      choice["message"] = Json::Object{{"role", "assistant"}, {"content", repaired_utf8(text_)}, {"refusal", Json()}};
    else
      choice["text"] = repaired_utf8(text_);
    Json::Object answer = head(false);
    answer["choices"] = Json::List{Json(std::move(choice))};
    answer["usage"] = usage();
    return Json(std::move(answer)).dump();
  }

  const ServedModel& served_;
  const Completion completion_;
  const std::shared_ptr<HttpReply> reply_;
  const Clock::time_point deadline_;
  std::string id_, text_;
  int64_t created_ = 0, tokens_ = 0;
  std::size_t begin_ = 0;     // where the answer begins in text_
  std::size_t searched_ = 0;  // up to here there is no stop text
  std::size_t sent_ = 0;
  bool started_ = false, timed_out_ = false;
};

void print_line(const std::string& text) {
  char time[32];
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  std::strftime(time, sizeof time, "%F %T", localtime_r(&now, &parts));
  std::fprintf(stderr, "%s  %s\n", time, text.c_str());
}

// Answers calls by a generator.
class Service {
 public:
  Service(const ServedModel& served, const Limits& limits, const training::BatchOptions& options, std::string key)
      : served_(served), limits_(limits), key_(std::move(key)), generator_(served.model, served.parameters, options) {
    for (const char* name : {"<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|im_end|>", "</s>"}) {
      if (const auto token = served.find(name)) stop_.push_back(*token);
    }
  }

  HttpAnswer answer(const HttpCall& call) {
    try {
      const bool chat = call.path == "/v1/chat/completions";
      if (call.path == "/health") return {200, "application/json", "{\"status\": \"ok\"}\n"};
      if (!key_.empty() && call.authorization != "Bearer " + key_)
        throw Refusal{401, "expected the header 'Authorization: Bearer KEY' with the server's key", ""};
      if (call.path == "/metrics") return {200, "text/plain; version=0.0.4; charset=utf-8", metrics()};
      if (call.path == "/v1/models") return models();
      if (!chat && call.path != "/v1/completions")
        throw Refusal{404,
                      concat("there is no ", call.path,
                             "; there are /v1/completions, /v1/chat/completions, "
                             "/v1/models, /health and /metrics"),
                      ""};
      if (call.method != "POST") throw Refusal{405, concat(call.path, " expects POST, got ", call.method), ""};
      if (!call.content_type.starts_with("application/json"))
        throw Refusal{415, "expected a body of Content-Type application/json", ""};
      return generate(read_request(served_, limits_, call, chat));
    } catch (const Refusal& refusal) {
      refused_ += 1;
      return refusal_answer(refusal);
    }
  }

  void stop() { generator_.stop(); }

 private:
  HttpAnswer generate(Completion completion) {
    const auto reply = std::make_shared<HttpReply>();
    const Clock::time_point start = Clock::now();
    const auto deadline =
        start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limits_.seconds));
    training::ServingRequest request;
    request.prompt = completion.tokens;
    request.max_new_tokens = completion.max_tokens;
    request.sampling = completion.sampling;
    request.stop = stop_;
    const auto answer = std::make_shared<Answer>(served_, std::move(completion), reply, deadline);
    request.on_token = [answer](int32_t token) { return answer->add(token); };
    request.abandoned = [answer] { return answer->abandoned(); };
    request.on_end = [answer, start, length = request.prompt.size()](auto how, const std::string& error) {
      answer->end(how, error);
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      char text[160];
      std::snprintf(text, sizeof text, "%zu tokens of prompt, %lld generated in %.2f s%s", length,
                    static_cast<long long>(answer->tokens()), seconds,
                    how == training::ServingRequest::End::failed ? ", failed" : "");
      print_line(text);
    };
    if (!generator_.submit(std::move(request)))
      throw Refusal{429, "the server is busy: all slots and the queue are full; try again later", "", "server_error"};
    HttpAnswer given;
    given.reply = reply;
    return given;
  }

  HttpAnswer models() const {
    Json::Object model{{"id", served_.name}, {"object", "model"}, {"created", started_}, {"owned_by", "capibara"}};
    return {200, "application/json",
            Json(Json::Object{{"object", "list"}, {"data", Json::List{Json(std::move(model))}}}).dump() + "\n"};
  }

  std::string metrics() const {
    const training::BatchGenerator::Counts counts = generator_.counts();
    std::string text;
    const auto row = [&](const char* name, const char* kind, const char* doc, int64_t value) {
      text += concat("# HELP capibara_serve_", name, " ", doc, "\n# TYPE capibara_serve_", name, " ", kind,
                     "\ncapibara_serve_", name, " ", value, "\n");
    };
    row("running", "gauge", "Requests that are being decoded.", counts.running);
    row("waiting", "gauge", "Requests that wait for a slot.", counts.waiting);
    row("finished_total", "counter", "Requests that have ended.", counts.finished);
    row("refused_total", "counter", "Requests that were refused.", refused_.load());
    row("prompt_tokens_total", "counter", "Tokens of prompts.", counts.prompt_tokens);
    row("generated_tokens_total", "counter", "Tokens of answers.", counts.new_tokens);
    return text;
  }

  const ServedModel& served_;
  const Limits limits_;
  const std::string key_;
  const int64_t started_ = static_cast<int64_t>(std::time(nullptr));
  std::vector<int32_t> stop_;  // tokens that end every answer
  std::atomic<int64_t> refused_{0};
  training::BatchGenerator generator_;
};

int64_t limit_of(const Arguments& arguments, const std::string& name, int64_t least) {
  const int64_t value = arguments.integer(name);
  if (value < least) throw UsageError{concat("--", name, ": expected ", least, " or more, got ", value)};
  return value;
}

}  // namespace

int serve(const Arguments& arguments) {
  const std::string folder = folder_of(arguments);
  training::BatchOptions options;
  options.slots = limit_of(arguments, "slots", 1);
  options.max_waiting = limit_of(arguments, "queue", 0);
  const int64_t wanted = limit_of(arguments, "capacity", 2);
  const double seconds = arguments.number("timeout");
  if (!(seconds > 0 && seconds <= 1e7))
    throw UsageError{concat("--timeout: expected up to 1e7 seconds, got ", seconds)};
  const int port = arguments.integer("port");
  if (port < 0 || port > 65535) throw UsageError{concat("--port: expected 0 to 65535, got ", port)};

  const InterruptGuard guard({SIGINT, SIGTERM});
  HttpServer server(
      arguments.text("address"), port,
      {.hosts = arguments.has("hosts") ? split(arguments.text("hosts", ""), ',') : std::vector<std::string>{},
       .max_body_bytes = 4 << 20,
       .what = "serve",
       .hosts_hint = "--hosts of capibara serve"});  // first: a port in use is said at once
  ServedModel served = open_model(folder);
  if (arguments.has("name")) served.name = arguments.text("name", "");
  served.parameters = training::convert_weights(served.parameters, arguments.text("weights"));
  const bool learned = served.model.config().positions == "learned";
  options.capacity = learned ? std::min(wanted, served.model.config().max_length) : wanted;
  const Limits limits = {options.capacity, limit_of(arguments, "max-tokens", 1), seconds};
  const char* key = std::getenv("CAPIBARA_API_KEY");
  Service service(served, limits, options, key ? key : "");
  server.start([&](const HttpCall& call) { return service.answer(call); });
  std::printf("capibara serve: '%s' at http://%s:%d/v1, %lld at a time, %lld tokens each; Ctrl-C ends\n",
              served.name.c_str(), server.address().c_str(), server.port(), static_cast<long long>(options.slots),
              static_cast<long long>(options.capacity));
  std::fflush(stdout);
  while (!guard.interrupted()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  service.stop();  // each stream ends with an error that says so
  server.drain(3000);
  print_line("stopped");
  return 0;
}

}  // namespace capibara::command
