// Google's application default credentials, searched in its order: a named file, gcloud's file, the metadata server.
#include "io/files/google_credentials.h"

#include <unistd.h>
#include <cmath>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <mutex>
#include <sstream>

#include <capibara/error.h>

#include "io/files/base64.h"
#include "io/files/http_client.h"
#include "io/files/json.h"
#include "io/files/object_operation.h"

namespace capibara {

namespace {

constexpr const char* scope = "https://www.googleapis.com/auth/devstorage.read_write";
constexpr const char* google_token_address = "https://oauth2.googleapis.com/token";
constexpr double early_seconds = 300;  // a token is refreshed this long before it expires

std::string variable(const char* name) {
  const char* value = secure_getenv(name);
  return value ? value : "";
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Tokens leave this machine only encrypted.
void check_token_address(const std::string& address, const std::string& file) {
  if (address.starts_with("https://") || address.starts_with("http://127.0.0.1:") ||
      address.starts_with("http://localhost:"))
    return;
  throw RuntimeError(concat("credentials: ", file, ": expected a 'token_uri' that begins with https://"));
}

struct Token {
  std::string text;
  double refresh_at = 0;  // of the steady clock
};

// Parses the answer of a token service.
Token token_of(const HttpReply& reply, const std::string& from) {
  if (reply.status == 0) throw RuntimeError(concat("credentials: no answer from ", from, ": ", reply.problem));
  Json answer;
  try {
    answer = Json::parse(reply.body, "credentials");
  } catch (const ValueError&) {  // handled below
  }
  const Json* text = answer.find("access_token");
  const Json* lifetime = answer.find("expires_in");
  if (reply.status == 200 && text && text->text() && !text->text()->empty() &&
      text->text()->find_first_of("\r\n") == std::string::npos) {
    const double seconds = lifetime && lifetime->number() ? *lifetime->number() : 3600;
    return {*text->text(), steady_seconds() + seconds - std::min(early_seconds, seconds / 5)};
  }
  // Only the reason: the answer may repeat what was sent.
  const Json* error = answer.find("error");
  const Json* description = answer.find("error_description");
  throw RuntimeError(concat("credentials: ", from, " gave no token (status ", reply.status,
                            error && error->text() ? concat(", ", error->text()->substr(0, 100)) : "",
                            description && description->text() ? concat(": ", description->text()->substr(0, 200)) : "",
                            "); make new credentials with 'gcloud auth application-default login' or a new key"));
}

Token send_form(const std::string& address, const std::string& form, const std::string& from) {
  HttpRequest request;
  request.method = "POST";
  request.url = address;
  request.headers = {"Content-Type: application/x-www-form-urlencoded"};
  request.body = {iovec{const_cast<char*>(form.data()), form.size()}};
  request.timeout_seconds = std::min(30.0, store_deadline_seconds());
  request.silence_seconds = request.timeout_seconds;
  HttpReply reply = send_request(request);
  // Retries once: token services are restarted, too.
  if (reply.status == 0 || reply.status >= 500) reply = send_request(request);
  return token_of(reply, from);
}

class CredentialsFile {
 public:
  explicit CredentialsFile(std::string path) : path_(std::move(path)) {
    std::ifstream file(path_, std::ios::binary);
    if (!file) throw RuntimeError(concat("credentials: the file ", path_, " cannot be read"));
    std::stringstream text;
    text << file.rdbuf();
    try {
      json_ = Json::parse(text.str(), path_);
    } catch (const ValueError&) {  // its message would quote the file
      throw RuntimeError(concat("credentials: the file ", path_, " is not JSON"));
    }
  }

  Token token() const {
    const std::string& type = member("type");
    if (type == "service_account") return of_service_account();
    if (type == "authorized_user") return of_user();
    throw RuntimeError(concat("credentials: ", path_, ": the type '", type.substr(0, 40),
                              "' is not supported; expected service_account or authorized_user"));
  }

 private:
  const std::string& member(const char* key) const {
    const Json* found = json_.find(key);
    if (!found || !found->text()) throw RuntimeError(concat("credentials: ", path_, ": expected a text '", key, "'"));
    return *found->text();
  }
  std::string token_address() const {
    const Json* given = json_.find("token_uri");
    const std::string address = given && given->text() ? *given->text() : google_token_address;
    check_token_address(address, path_);
    return address;
  }

  // A statement signed with the account's key, exchanged for a token (RFC 7523).
  Token of_service_account() const {
    const std::string address = token_address();
    const auto now = static_cast<int64_t>(std::time(nullptr));
    Json::Object header{{"alg", "RS256"}, {"typ", "JWT"}};
    if (const Json* id = json_.find("private_key_id"); id && id->text()) header["kid"] = *id;
    const Json claims = Json::Object{
        {"iss", member("client_email")}, {"scope", scope}, {"aud", address}, {"iat", now}, {"exp", now + 3600}};
    const std::string statement = base64_url(Json(std::move(header)).dump()) + "." + base64_url(claims.dump());
    std::string signature;
    try {
      signature = sign_rs256(member("private_key"), statement);
    } catch (const ValueError& error) {
      throw RuntimeError(concat("credentials: ", path_, ": 'private_key': ", error.what()));
    }
    return send_form(address,
                     "grant_type=" + url_quoted("urn:ietf:params:oauth:grant-type:jwt-bearer") +
                         "&assertion=" + statement + "." + base64_url(signature),
                     concat(address, " for the service account of ", path_));
  }

  Token of_user() const {
    const std::string address = token_address();
    return send_form(address,
                     "grant_type=refresh_token&client_id=" + url_quoted(member("client_id")) + "&client_secret=" +
                         url_quoted(member("client_secret")) + "&refresh_token=" + url_quoted(member("refresh_token")),
                     concat(address, " for the user of ", path_));
  }

  std::string path_;
  Json json_;
};

Token from_metadata_server(const std::string& host, const std::string& searched) {
  HttpRequest request;
  request.url = "http://" + host + "/computeMetadata/v1/instance/service-accounts/default/token";
  request.headers = {"Metadata-Flavor: Google"};
  request.timeout_seconds = std::min(10.0, store_deadline_seconds());
  request.silence_seconds = 3;
  HttpReply reply = send_request(request);
  if (reply.status >= 500) reply = send_request(request);
  if (reply.status == 0) {
    throw RuntimeError(concat("credentials: none found: ", searched, "the metadata server ", host, " does not answer (",
                              reply.problem,
                              "); name a key with GOOGLE_APPLICATION_CREDENTIALS, or run 'gcloud auth "
                              "application-default login'"));
  }
  if (reply.status == 404)
    throw RuntimeError(concat("credentials: the metadata server ", host, " has no service account for this machine"));
  return token_of(reply, "the metadata server " + host);
}

Token fetch_token() {
  if (const std::string named = variable("GOOGLE_APPLICATION_CREDENTIALS"); !named.empty())
    return CredentialsFile(named).token();
  std::string gcloud = variable("CLOUDSDK_CONFIG");
  if (gcloud.empty() && !variable("HOME").empty()) gcloud = variable("HOME") + "/.config/gcloud";
  const std::string file = gcloud + "/application_default_credentials.json";
  if (!gcloud.empty() && ::access(file.c_str(), R_OK) == 0) return CredentialsFile(file).token();
  const std::string host = variable("GCE_METADATA_HOST");
  return from_metadata_server(host.empty() ? "metadata.google.internal" : host,
                              concat("GOOGLE_APPLICATION_CREDENTIALS is not set, there is no file ", file, ", and "));
}

}  // namespace

double store_deadline_seconds() {
  const std::string given = variable("CAPIBARA_STORE_DEADLINE");
  if (given.empty()) return 120;
  char* end = nullptr;
  const double seconds = std::strtod(given.c_str(), &end);
  if (*end != '\0' || !(seconds > 0 && seconds < 1e6))
    throw ValueError(concat("CAPIBARA_STORE_DEADLINE: expected a number of seconds, got '", given, "'"));
  return seconds;
}

std::string google_token(const std::string& refused) {
  static std::mutex mutex;
  static Token token;
  if (!variable("STORAGE_EMULATOR_HOST").empty() && variable("GOOGLE_APPLICATION_CREDENTIALS").empty() &&
      variable("GCE_METADATA_HOST").empty())
    return "";
  std::lock_guard lock(mutex);
  if (token.text.empty() || token.text == refused || steady_seconds() >= token.refresh_at) token = fetch_token();
  return token.text;
}

}  // namespace capibara
