"""A fake Cloud Storage, its token service and the metadata server on loopback, which fails on request."""

import base64
import hashlib
import http.server
import json
import random
import re
import threading
import time
import urllib.parse

try:
    import google_crc32c
except ImportError:
    google_crc32c = None


def crc32c(data):
    """CRC-32C with google-crc32c, a dependency of zarr, or from the polynomial with a table."""
    if google_crc32c is not None:
        return google_crc32c.value(bytes(data))
    value = 0xFFFFFFFF
    for byte in data:
        value = TABLE[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


def table_entry(value):
    for _ in range(8):
        value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value


TABLE = [table_entry(i) for i in range(256)]


class FakeStore(http.server.ThreadingHTTPServer):
    """`faults`: pairs of a regular expression for "METHOD path" and an action; each is used once, the first match first.

    Actions: a number answers with this status; "cut" closes the connection; "lost" handles the request and closes the
    connection; "half" takes half of the bytes of a part and answers 503; "wrong" sends a wrong checksum; "silent" never answers.
    """
    daemon_threads = True

    def __init__(self, bucket="bucket", page=3):
        super().__init__(("127.0.0.1", 0), Handler)
        self.bucket, self.page = bucket, page
        self.objects, self.checksums, self.sessions, self.faults, self.log = {}, {}, {}, [], []
        self.generation, self.tokens, self.given, self.lifetime = 1, None, 0, 3600
        self.key, self.forms = None, []
        self.ended = threading.Event()
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def host(self):
        return f"127.0.0.1:{self.server_address[1]}"

    def environment(self, **more):
        return {"STORAGE_EMULATOR_HOST": f"http://{self.host}", "CAPIBARA_STORE_DEADLINE": "60", "CLOUDSDK_CONFIG": "/nonexistent",
                "GOOGLE_APPLICATION_CREDENTIALS": "", "GCE_METADATA_HOST": "", **more}

    def close(self):
        self.ended.set()
        self.shutdown()
        self.server_close()

    def put(self, name, data):
        self.generation += 1
        self.objects[name] = (bytes(data), self.generation)

    def describe(self, name, wrong=False):
        data, generation = self.objects[name]
        if generation not in self.checksums:
            self.checksums[generation] = crc32c(data)
        checksum = self.checksums[generation] ^ (1 if wrong else 0)
        return {"name": name, "size": str(len(data)), "generation": str(generation),
                "crc32c": base64.b64encode(checksum.to_bytes(4, "big")).decode()}

    def new_token(self):
        self.given += 1
        token = f"secret-token-{self.given}"
        self.tokens = (self.tokens or set()) | {token}
        return {"access_token": token, "expires_in": self.lifetime, "token_type": "Bearer"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def answer(self, status, content=b"", **headers):
        body = json.dumps(content).encode() if isinstance(content, (dict, list)) else content
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def fail(self, status, message="told to fail"):
        self.answer(status, {"error": {"code": status, "message": message}})

    def any_method(self):
        store = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        address = urllib.parse.urlsplit(self.path)
        query = {key: values[0] for key, values in urllib.parse.parse_qs(address.query).items()}
        path = address.path
        store.log.append((self.command, self.path, time.monotonic(), self.headers.get("Range") or self.headers.get("Content-Range")))
        action = None
        with store.lock:
            for i, (expression, what) in enumerate(store.faults):
                if re.search(expression, f"{self.command} {self.path}"):
                    action = what
                    del store.faults[i]
                    break
        if isinstance(action, int):
            return self.fail(action)
        if action == "silent":
            store.ended.wait(60)
        if action in ("cut", "silent"):
            self.close_connection = True
            return self.connection.close()
        if path == "/token":
            return self.token_service(urllib.parse.parse_qs(body.decode()))
        if path.startswith("/computeMetadata/"):
            assert self.headers["Metadata-Flavor"] == "Google"
            return self.answer(200, store.new_token())
        if store.tokens is not None and (self.headers.get("Authorization") or "").removeprefix("Bearer ") not in store.tokens:
            return self.fail(401, "Invalid Credentials")
        with store.lock:
            if action == "lost":
                answer, self.answer = self.answer, lambda *words, **headers: None
                self.storage(path, query, body, None)
                self.answer = answer
                self.close_connection = True
                return self.connection.close()
            self.storage(path, query, body, action)

    do_GET = do_POST = do_PUT = do_DELETE = any_method

    def storage(self, path, query, body, action):
        store = self.server
        if path.startswith("/session/"):
            return self.part(path, body, action)
        place = re.fullmatch(r"(/upload)?/storage/v1/b/([^/]+)/o(?:/(.+))?", path)
        if not place:
            return self.fail(400, f"no such place: {path}")
        upload, bucket, name = place.groups()
        if bucket != store.bucket:
            return self.fail(404, "The specified bucket does not exist.")
        if upload:
            name = query["name"]
            if query.get("ifGenerationMatch") == "0" and name in store.objects:
                return self.fail(412, "At least one of the pre-conditions you specified did not hold.")
            if query["uploadType"] == "resumable":
                session = f"/session/{len(store.sessions)}"
                store.sessions[session] = (name, bytearray())
                return self.answer(200, Location=f"http://{store.host}{session}")
            store.put(name, body)
            return self.answer(200, store.describe(name, action == "wrong"))
        if name is None:
            return self.listing(query)
        copy = re.fullmatch(r"([^/]+)/rewriteTo/b/([^/]+)/o/([^/]+)", name)
        if copy:
            return self.rewrite(*map(urllib.parse.unquote, copy.groups()), query, action)
        name = urllib.parse.unquote(name)
        if name not in store.objects:
            return self.fail(404, f"No such object: {bucket}/{name}")
        if self.command == "DELETE":
            del store.objects[name]
            return self.answer(204)
        data, generation = store.objects[name]
        if query.get("alt") != "media":
            return self.answer(200, store.describe(name))
        if query.get("generation", str(generation)) != str(generation):
            return self.fail(404, "No such generation")
        expected = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or "")
        if not expected:
            return self.answer(200, data)
        first, last = int(expected[1]), min(int(expected[2]), len(data) - 1)
        if first >= len(data):
            return self.fail(416, "Range not satisfiable")
        if action == "half":
            last = first + (last - first) // 2
        self.answer(206, data[first:last + 1], Content_Range=f"bytes {first}-{last}/{len(data)}")

    def part(self, path, body, action):
        store = self.server
        if path not in store.sessions:
            return self.fail(404, "No such session")
        name, held = store.sessions[path]
        first, total = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(\d+)", self.headers["Content-Range"]).groups()
        if first is not None:
            if int(first) > len(held):
                return self.fail(400, "parts out of order")
            body = body[len(held) - int(first):]  # skips bytes that it already has, like the store
            held += body[:len(body) // 2] if action == "half" else body
        if action == "half":
            return self.fail(503)
        if len(held) < int(total):
            return self.answer(308, **({"Range": f"bytes=0-{len(held) - 1}"} if held else {}))
        store.put(name, held)
        self.answer(200, store.describe(name, action == "wrong"))

    def rewrite(self, source, bucket, target, query, action):
        """Completes in two requests, like the store with large objects."""
        store = self.server
        if source not in store.objects or bucket != store.bucket:
            return self.fail(404, f"No such object: {source}")
        data, generation = store.objects[source]
        if query.get("sourceGeneration", str(generation)) != str(generation):
            return self.fail(404, "No such generation")
        if "rewriteToken" not in query:
            return self.answer(200, {"done": False, "rewriteToken": "go on/with=this"})
        assert query["rewriteToken"] == "go on/with=this"
        store.put(target, data)
        self.answer(200, {"done": True, "resource": store.describe(target, action == "wrong")})

    def listing(self, query):
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        entries = []
        for name in sorted(self.server.objects):
            if not name.startswith(prefix):
                continue
            rest = name[len(prefix):]
            folder = rest.split(delimiter)[0] + delimiter if delimiter and delimiter in rest else None
            entry = ("prefixes", prefix + folder) if folder else ("items", name)
            if entry not in entries:
                entries.append(entry)
        first = int(query.get("pageToken", "0"))
        answer = {}
        for kind, name in entries[first:first + self.server.page]:
            answer.setdefault(kind, []).append(name if kind == "prefixes" else self.server.describe(name))
        if first + self.server.page < len(entries):
            answer["nextPageToken"] = str(first + self.server.page)
        self.answer(200, answer)

    def token_service(self, form):
        store = self.server
        form = {key: values[0] for key, values in form.items()}
        store.forms.append(form)
        if form["grant_type"] == "refresh_token":
            good = (form["client_id"], form["client_secret"], form["refresh_token"]) == ("the id", "the secret&=", "1//refresh")
        else:
            good = form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer" and is_signed(form["assertion"], store.key)
        if not good:
            return self.answer(400, {"error": "invalid_grant", "error_description": "Bad Request"})
        self.answer(200, store.new_token())


# ---- keys of service accounts, from the definition of RSA ----------------------------------------------------------------


def is_signed(assertion, key):
    """Verifies RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017)."""
    statement, signature = assertion.rsplit(".", 1)
    number = int.from_bytes(unbase64(signature), "big")
    encoded = pow(number, key["e"], key["n"]).to_bytes(key["bytes"], "big")
    digest = bytes.fromhex("3031300d060960864801650304020105000420") + hashlib.sha256(statement.encode()).digest()
    return encoded == b"\x00\x01" + b"\xff" * (key["bytes"] - len(digest) - 3) + b"\x00" + digest


def claims(assertion):
    return json.loads(unbase64(assertion.split(".")[1]))


def unbase64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def is_prime(n, draw):
    if any(n % p == 0 for p in (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)):
        return False
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for _ in range(24):
        x = pow(draw.randrange(2, n - 1), odd, n)
        if x not in (1, n - 1) and not any((x := x * x % n) == n - 1 for _ in range(twos - 1)):
            return False
    return True


def make_key(bits=1024, seed=7):
    """A key that protects nothing: {"n", "e", "bytes", "pem"}."""
    draw, e = random.Random(seed), 65537

    def prime():
        while True:
            n = draw.getrandbits(bits // 2) | 3 << bits // 2 - 2 | 1
            if n % e != 1 and is_prime(n, draw):
                return n

    p, q = prime(), prime()
    d = pow(e, -1, (p - 1) * (q - 1))
    numbers = [0, p * q, e, d, p, q, d % (p - 1), d % (q - 1), pow(q, -1, p)]
    content = b"".join(der(0x02, n.to_bytes(n.bit_length() // 8 + 1, "big")) for n in numbers)
    text = base64.encodebytes(der(0x30, content)).decode()
    return {"n": p * q, "e": e, "bytes": bits // 8, "pem": f"-----BEGIN RSA PRIVATE KEY-----\n{text}-----END RSA PRIVATE KEY-----\n"}


def der(tag, content):
    size = len(content)
    if size < 128:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content
