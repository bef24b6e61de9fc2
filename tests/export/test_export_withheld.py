import pytest
from export_samples import ARGV, record

from spectune.engines.protocol import LaunchCommand
from spectune.errors import SpectuneError
from spectune.export import Origin, command_text, export_candidates
from spectune.search.storage.records import Status
from spectune.withheld import hides_secret, secret_values

SECRET = "s3cret-value"
ORIGIN = Origin("study", "SGLang 0.5.23", simulated=False)


@pytest.mark.parametrize(
    "name",
    ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "WANDB_API_KEY", "PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "api-key",
     "admin-api-key", "ssl-keyfile-password", "client_credentials", "AUTH_TOKEN"],
)  # fmt: skip
def test_names_of_secrets(name):
    assert hides_secret(name, ["x"])


@pytest.mark.parametrize(
    "name",
    ["max-total-tokens", "speculative-num-draft-tokens", "tokenizer-path", "speculative-token-map", "ssl-keyfile",
     "kt-max-deferred-experts-per-token", "bucket-time-to-first-token", "bucket-inter-token-latency",
     "TOKENIZERS_PARALLELISM", "SGLANG_SIMULATE_ACC_TOKEN_MODE", "NCCL_IB_PKEY", "tbo-token-distribution-threshold"],
)  # fmt: skip
def test_names_that_only_sound_like_secrets(name):
    assert not hides_secret(name, ["x"])


@pytest.mark.parametrize("value", ["http://me:pw@proxy:3128", "hf_" + "a" * 30, "x sk-" + "b" * 24])
def test_values_that_give_themselves_away(value):
    assert hides_secret("harmless", [value])


def test_a_switch_holds_no_secret():
    assert not hides_secret("enable-key", [])


def test_every_secret_of_a_launch_is_known():
    command = LaunchCommand(
        ("p", "--api-key", SECRET, "--admin-api-key=other-one", "--x", "1"), {"HF_TOKEN": "third-one", "A": "b"}
    )
    assert secret_values([command]) == {SECRET, "other-one", "third-one"}


def test_exports_name_what_was_left_out_and_never_hold_it(tmp_path):
    argv = (*ARGV, "--api-key", SECRET, f"--admin-api-key={SECRET}")
    pick = record(argv=argv, env={"HF_TOKEN": SECRET, "HTTP_PROXY": f"http://me:{SECRET}@proxy"})
    (files,) = export_candidates([pick], tmp_path, ORIGIN)
    for path in files.files.values():
        text = path.read_text()
        assert SECRET not in text
        for name in ("HF_TOKEN", "HTTP_PROXY", "--api-key", "--admin-api-key"):
            assert f"{name} was" in text
    assert SECRET not in command_text(pick.command)


@pytest.mark.parametrize("name", ["A-B", "A B", "1A", "A$(id)", ""])
def test_variables_no_shell_can_export_are_refused(name, tmp_path):
    with pytest.raises(SpectuneError, match="letters, digits and underscores"):
        export_candidates([record(env={name: "x"})], tmp_path, ORIGIN)


@pytest.mark.parametrize("status", [Status.SUSPECT, Status.FAILED])
def test_what_did_not_run_as_asked_is_never_exported(status, tmp_path):
    with pytest.raises(SpectuneError, match=f"trial 3 is {status.value}"):
        export_candidates([record(status=status)], tmp_path, ORIGIN)
    assert not list(tmp_path.iterdir())
