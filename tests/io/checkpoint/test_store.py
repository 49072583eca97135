"""Steps in an object store: saved, read, killed and rejected, against a fake on loopback and gcp-storage-emulator."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from fake_store import FakeStore, claims, make_key  # noqa: E402

BUILD = Path(os.environ["CAPIBARA_BUILD"])
PROGRAM, COMMAND = BUILD / "tests" / "checkpoint_program", os.environ.get("CAPIBARA_COMMAND", BUILD / "capibara")
ROOT = Path(__file__).resolve().parents[3]
EMULATOR = ROOT / "build" / "venv-operate" / "bin" / "gcp-storage-emulator"
KILLS = int(os.environ.get("CAPIBARA_KILLS", "4"))
FREEZES = int(os.environ.get("CAPIBARA_FREEZES", "2"))
SUM = sum(i * 2654435761 for i in range(9 << 18)) % 2**32  # sum of the words of 9 MiB

pytestmark = pytest.mark.skipif(
    "was built without it" in subprocess.run([PROGRAM, "check", "gs://bucket/x"], capture_output=True, text=True,
                                             env={**os.environ, "STORAGE_EMULATOR_HOST": "http://127.0.0.1:1",
                                                  "CAPIBARA_STORE_DEADLINE": "0.1"}).stderr,
    reason="capibara was built without libcurl")


def run(store, *words, **more):
    environment = {**os.environ, **store.environment(**more)}
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, env=environment, timeout=300)
    assert "secret" not in done.stdout + done.stderr, "a secret was printed"
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def store():
    fake = FakeStore()
    yield fake
    fake.close()


def saved(store, **more):
    """Saves step 1 and restores it."""
    code, out, err = run(store, "save", "gs://bucket/run", 1, **more)
    assert (code, out) == (0, "saved 1\n"), err
    code, out, err = run(store, "check", "gs://bucket/run", **more)
    assert (code, out) == (0, "1\n"), err


def test_a_step_is_saved_and_read_back(store):
    saved(store)
    assert "run/1/capibara.json" in store.objects and "run/1/params/moving/c.0" in store.objects
    # The marker comes last.
    written = [path for method, path, *_ in store.log if method == "POST"]
    assert "commit_success.txt" in written[-1] and not any("commit_success" in path for path in written[:-1])


def test_a_step_without_its_marker_is_not_there(store):
    saved(store)
    del store.objects["run/1/commit_success.txt"]
    assert run(store, "check", "gs://bucket/run")[:2] == (0, "0\n")
    saved(store)  # over the leftovers


def test_large_arrays_go_up_in_parts_and_come_back_in_ranges(store):
    code, _, err = run(store, "large", "gs://bucket/run", 1, 9)
    assert code == 0, err
    parts = [where for method, path, _, where in store.log if method == "PUT"]
    assert len(parts) == 2 and parts[0].startswith("bytes 0-8388607/")
    store.log.clear()
    assert run(store, "sum", "gs://bucket/run", 1)[1] == f"{SUM}\n"
    ranges = [where for method, path, _, where in store.log if "w%2Fc.0?alt=media" in path]
    assert len(ranges) >= 9 and all(where.startswith("bytes=") for where in ranges)


@pytest.mark.parametrize("fault", [(r"PUT /session", 503), (r"PUT /session", "cut"), (r"PUT /session", "lost"), (r"PUT /session", "half"),
                                   (r"PUT /session", 410), (r"POST .*resumable", 429), (r"PUT /session", "wrong"),
                                   (r"GET .*w%2Fc.0.*media", "cut"), (r"GET .*w%2Fc.0.*media", "half"), (r"GET .*w%2Fc.0.*media", 500)])
def test_uploads_and_reads_go_on_after_a_failure(store, fault):
    store.faults = [fault]
    code, _, err = run(store, "large", "gs://bucket/run", 1, 9)
    assert code == 0, err
    assert run(store, "sum", "gs://bucket/run", 1)[1] == f"{SUM}\n"
    assert not store.faults


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_statuses_that_pass_are_waited_out(store, status):
    store.faults = [("GET", status), ("POST", status), ("POST", status), ("media&name=.*zarr", status), ("GET .*alt=media", status)]
    saved(store)
    assert not store.faults


def test_pauses_grow(store):
    store.faults = [("POST .*commit_success", 503)] * 4
    saved(store)
    times = [when for method, path, when, _ in store.log if method == "POST" and "commit_success" in path]
    assert len(times) == 5 and times[4] - times[0] >= 0.75  # at least half of 0.1 + 0.2 + 0.4 + 0.8 s


def test_a_refusal_is_told_at_once(store):
    store.faults = [("POST .*moving", 403)]
    code, _, err = run(store, "save", "gs://bucket/run", 1)
    assert code == 1 and "writing gs://bucket/run/1/params/moving/zarr.json failed: status 403, told to fail; give the account" in err
    assert run(store, "check", "gs://bucket/run")[:2] == (0, "0\n")


def test_a_step_that_another_process_commits_meanwhile_is_refused(store):
    store.faults = [("POST .*commit_success", 412)]
    code, _, err = run(store, "save", "gs://bucket/run", 1)
    assert code == 1 and "status 412" in err and "another process has written the object in the meantime" in err


def test_a_marker_whose_answer_was_lost_is_there(store):
    store.faults = [("POST .*commit_success", "lost")]
    saved(store)


def test_an_upload_that_stays_wrong_is_an_error(store):
    store.faults = [("POST .*moving%2Fzarr.json", "wrong")] * 3
    code, _, err = run(store, "save", "gs://bucket/run", 1)
    assert code == 1 and "another checksum" in err and "after 3 attempts" in err
    assert "run/1/params/moving/zarr.json" not in store.objects


def test_a_missing_bucket_is_named(store):
    code, _, err = run(store, "save", "gs://other/run", 1)
    assert code == 1 and "listing gs://other/run failed: status 404, The specified bucket does not exist.; is the name of the bucket" in err
    code, _, err = run(store, "save", "gs://Not A Bucket/run", 1)
    assert code == 1 and "expected gs://BUCKET/NAME" in err


def test_a_silent_server_ends_at_the_deadline(store):
    store.faults = [("POST .*commit_success", "silent")] * 50
    code, _, err = run(store, "save", "gs://bucket/run", 1, CAPIBARA_STORE_DEADLINE="3")
    assert code == 1 and "no success within 3 s" in err
    # One silent response is not fatal.
    store.faults = [("POST .*commit_success", "silent")]
    saved(store, CAPIBARA_STORE_DEADLINE="24")


def test_nobody_listens():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{free.getsockname()[1]}"
        done = subprocess.run([PROGRAM, "check", "gs://bucket/x"], capture_output=True, text=True,
                              env={**os.environ, "STORAGE_EMULATOR_HOST": host, "CAPIBARA_STORE_DEADLINE": "1"})
    assert done.returncode == 1 and "no success within 1 s" in done.stderr


def test_damage_is_found_and_named(store):
    saved(store)
    data, _ = store.objects["run/1/params/moving/c.0"]
    store.put("run/1/params/moving/c.0", data[:1000] + bytes([data[1000] ^ 4]) + data[1001:])
    code, _, err = run(store, "check", "gs://bucket/run")
    assert code == 1 and "array params.moving, file gs://bucket/run/1/params/moving/c.0, chunk 0 of" in err


def train_four_steps(store):
    environment = {**os.environ, **store.environment()}
    words = [PROGRAM, "train", "gs://bucket/run", "2", "sync"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as training:
        while training.stdout.readline() not in ("4\n", ""):
            pass
        training.kill()


def test_unchanged_arrays_are_copied_by_the_store(store):
    store.faults = [("POST .*run%2F2%2Fparams%2Ffrozen.*rewriteTo", 503), ("POST .*run%2F3%2Fparams%2Ffrozen.*rewriteToken", "cut")]
    train_four_steps(store)
    posts = [path for method, path, *_ in store.log if method == "POST"]
    for step in range(1, 5):
        sent = [path for path in posts if path.startswith("/upload/") and f"run%2F{step}%2Fparams%2F" in path and path.endswith("c.0")]
        assert [path.split("%2F")[-2] for path in sent] == (["frozen"] if step == 1 else []) + ["moving", "step"]
    assert sum("%2Ffrozen%2Fc.0/rewriteTo/b/bucket/o/run%2F4%2Fparams%2Ffrozen%2Fc.0" in path for path in posts) == 2
    assert run(store, "check", "gs://bucket/run")[0] == 0


def test_a_copy_with_another_checksum_is_an_error(store):
    store.faults = [("POST .*params%2Ffrozen.*rewriteToken", "wrong")]
    code, _, err = run(store, "train", "gs://bucket/run", 2, "sync")
    assert code == 1 and "copying to gs://bucket/run/2/params/frozen/c.0" in err and "another checksum" in err


def test_old_steps_go_marker_first(store):
    train_four_steps(store)
    deletes = [path for method, path, *_ in store.log if method == "DELETE"]
    assert deletes[0].endswith("run%2F1%2Fcommit_success.txt")
    assert run(store, "check", "gs://bucket/run")[0] == 0


# ---- credentials ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def key():
    return make_key()


def service_account(tmp_path, store, key, **changes):
    path = tmp_path / "key.json"
    path.write_text(json.dumps({"type": "service_account", "client_email": "robot@project.iam", "private_key_id": "7",
                                "private_key": key["pem"], "token_uri": f"http://{store.host}/token", **changes}))
    return {"GOOGLE_APPLICATION_CREDENTIALS": str(path)}


def test_a_service_account_signs_for_its_token(store, tmp_path, key):
    store.tokens, store.key = set(), key
    saved(store, **service_account(tmp_path, store, key))
    assert store.given == 2  # one token for each process
    said = claims(store.forms[0]["assertion"])
    assert said["iss"] == "robot@project.iam" and said["aud"].endswith("/token") and 0 < said["exp"] - said["iat"] <= 3600
    assert said["scope"] == "https://www.googleapis.com/auth/devstorage.read_write"


def test_a_user_s_refresh_token(store, tmp_path):
    store.tokens = set()
    user = {"type": "authorized_user", "client_id": "the id", "client_secret": "the secret&=", "refresh_token": "1//refresh",
            "token_uri": f"http://{store.host}/token"}
    (tmp_path / "application_default_credentials.json").write_text(json.dumps(user))
    found = {"CLOUDSDK_CONFIG": str(tmp_path), "GCE_METADATA_HOST": "127.0.0.1:1"}
    saved(store, **found)
    (tmp_path / "application_default_credentials.json").write_text(json.dumps({**user, "refresh_token": "old secret"}))
    code, _, err = run(store, "check", "gs://bucket/run", **found)
    assert code == 1 and "gave no token (status 400, invalid_grant: Bad Request)" in err


def test_the_metadata_server(store):
    store.tokens = set()
    saved(store, GCE_METADATA_HOST=store.host)
    assert store.given == 2


def test_tokens_are_refreshed_before_they_expire_and_when_refused(store):
    store.tokens, store.lifetime = set(), 0  # tokens expire at once
    saved(store, GCE_METADATA_HOST=store.host)
    assert store.given > 10
    store.lifetime, store.given = 3600, 0
    store.faults = [("POST .*zarr", 401)]
    assert run(store, "save", "gs://bucket/run", 2, GCE_METADATA_HOST=store.host)[0] == 0
    assert store.given == 2
    store.faults = [("POST .*zarr", 401)] * 2
    code, _, err = run(store, "save", "gs://bucket/run", 3, GCE_METADATA_HOST=store.host)
    assert code == 1 and "status 401" in err and "refused twice" in err


def test_credentials_that_cannot_work_are_named(store, tmp_path, key):
    store.tokens, store.key = set(), key
    for changes, message in [({"private_key": "-----BEGIN secret"}, "'private_key': expected a private key in PEM"),
                             ({"token_uri": "http://elsewhere.example/secret"}, "expected a 'token_uri' that begins with https://"),
                             ({"type": "external_account"}, "the type 'external_account' is not supported"),
                             ({"private_key": 3}, "expected a text 'private_key'")]:
        code, _, err = run(store, "check", "gs://bucket/run", **service_account(tmp_path, store, key, **changes))
        assert code == 1 and message in err, err
    for content, message in [("{secret", "is not JSON"), (None, "cannot be read")]:
        path = tmp_path / "broken.json"
        path.unlink(missing_ok=True)
        if content:
            path.write_text(content)
        code, _, err = run(store, "check", "gs://bucket/run", GOOGLE_APPLICATION_CREDENTIALS=str(path))
        assert code == 1 and message in err, err
    code, _, err = run(store, "check", "gs://bucket/run", GCE_METADATA_HOST="127.0.0.1:1")
    assert code == 1 and "GOOGLE_APPLICATION_CREDENTIALS is not set" in err and "gcloud auth application-default login" in err


# ---- the emulator -------------------------------------------------------------------------------------------------------------


class Emulator:
    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        words = [EMULATOR, "start", "--host=127.0.0.1", f"--port={self.port}", "--in-memory", "--default-bucket=bucket"]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                return urllib.request.urlopen(f"http://127.0.0.1:{self.port}/storage/v1/b/bucket/o", timeout=5).close()
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("gcp-storage-emulator does not answer")

    def environment(self, **more):
        return {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{self.port}", "CAPIBARA_STORE_DEADLINE": "60",
                "GOOGLE_APPLICATION_CREDENTIALS": "", "GCE_METADATA_HOST": "", **more}

    def close(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def emulator():
    if not EMULATOR.exists():
        pytest.skip("gcp-storage-emulator is not installed (build/venv-operate)")
    server = Emulator()
    yield server
    server.close()


def test_the_emulator_holds_large_steps(emulator):
    code, _, err = run(emulator, "large", "gs://bucket/large", 1, 9)
    assert code == 0, err
    assert run(emulator, "sum", "gs://bucket/large", 1)[1] == f"{SUM}\n"


def test_the_command_reads_the_store(emulator, tmp_path):
    assert run(emulator, "save", "gs://bucket/command", 1)[0] == 0

    def command(*words):
        done = subprocess.run([COMMAND, "checkpoint", *map(str, words)], capture_output=True, text=True,
                              env={**os.environ, **emulator.environment()})
        return done.returncode, done.stdout

    assert command("list", "gs://bucket/command")[1].split()[:3] == ["1", "3", "arrays"]
    assert command("verify", "gs://bucket/command") == (0, "step 1: 3 arrays are whole\n")
    assert command("convert", "gs://bucket/command", tmp_path / "files") == (0, f"saved step 1 in {tmp_path / 'files'}\n")
    assert command("convert", tmp_path / "files", "gs://bucket/back", "--step", 1)[0] == 0
    assert command("diff", "gs://bucket/back/1", tmp_path / "files" / "1") == (0, "3 arrays are equal, 0 differ\n")


def test_the_newest_committed_step_survives_kills(emulator):
    draw, committed = random.Random(5), 0
    environment = {**os.environ, **emulator.environment()}
    for _ in range(KILLS):
        words = [PROGRAM, "train", "gs://bucket/killed", "2", "sync"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as training:
            first = training.stdout.readline()  # it is running
            time.sleep(draw.uniform(0, 0.3))
            training.kill()
            lines = [first, *training.stdout.read().split("\n")]
        committed = max([committed, *(int(line) for line in lines if line.strip())])
        code, out, err = run(emulator, "check", "gs://bucket/killed")
        assert code == 0 and int(out) >= committed, err
        committed = int(out)


def test_a_frozen_server_delays_a_save(emulator):
    draw = random.Random(6)
    for step in range(1, FREEZES + 1):
        training = subprocess.Popen([PROGRAM, "large", "gs://bucket/frozen", str(step), "9"], stdout=subprocess.PIPE, text=True,
                                    env={**os.environ, **emulator.environment()})
        time.sleep(draw.uniform(0.02, 0.3))
        emulator.process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        emulator.process.send_signal(signal.SIGCONT)
        assert training.communicate(timeout=120)[0] == f"saved {step}\n"
        assert run(emulator, "sum", "gs://bucket/frozen", step)[1] == f"{SUM}\n"


def test_a_server_that_stays_frozen_ends_a_save_at_its_deadline(emulator):
    emulator.process.send_signal(signal.SIGSTOP)
    try:
        code, _, err = run(emulator, "save", "gs://bucket/never", 1, CAPIBARA_STORE_DEADLINE="3")
    finally:
        emulator.process.send_signal(signal.SIGCONT)
    assert code == 1 and "no success within 3 s" in err
