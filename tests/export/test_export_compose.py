import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml
from export_samples import ARGV, record
from hypothesis import given, settings
from hypothesis import strategies as st

from spectune.export import Format, Origin, export_candidates
from spectune.export.compose import compose_file
from spectune.export.launch import Launch

SCHEMA = json.loads((Path(__file__).parent / "compose_spec/compose-spec.json").read_text())
ORIGIN = Origin("study", "SGLang 0.5.23", simulated=False, gpus=8)
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
words = st.one_of(
    words,
    st.sampled_from(["$HOME", "${X:-y}", "$$", "a'b\"c", "two\nlines", "`id`", "true", "0x1", "~", "# no"]),
)


def service(pick, origin=ORIGIN):
    text = compose_file(pick, Launch.of(pick.command), origin, file_name="launch-x.compose.yaml")
    content = yaml.safe_load(text)
    jsonschema.Draft7Validator(SCHEMA).validate(content)
    return content["services"]["sglang"]


def expanded(text, shell=()):
    """What compose makes of a string: variables of the caller's shell, `$$` is `$`."""
    known = dict(shell)

    def one(found):
        if found[0] == "$$":
            return "$"
        name, _, default = found[1].partition(":-")
        return known.get(name, default)

    return re.sub(r"\$\$|\$\{([^{}]*)\}", one, text)


def test_the_schema_is_one():
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(SCHEMA).validate({"services": {"x": {"image": 3}}})


def test_it_is_the_launch_in_sglangs_image():
    made = service(record(env={"NCCL_ALGO": "allreduce:ring"}, unset=["NCCL_PROTO"]))
    assert expanded(made["image"]) == "lmsysorg/sglang:v0.5.23"
    assert made["command"][:6] == ["env", "-u", "NCCL_PROTO", "python3", "-m", "sglang.launch_server"]
    assert made["command"][-4:] == ["--host", "0.0.0.0", "--port", "30000"]
    assert "31007" not in made["command"]
    assert expanded(made["ports"][0]) == "127.0.0.1:30000:30000"
    assert made["environment"] == {"NCCL_ALGO": "allreduce:ring"}
    assert made["volumes"][0] == {
        "type": "bind", "source": "/models/target", "target": "/models/target", "read_only": True,
    }  # fmt: skip
    (device,) = made["deploy"]["resources"]["reservations"]["devices"]
    assert (device["count"], device["capabilities"]) == (8, ["gpu"])


def test_a_launch_without_gpus_reserves_none():
    assert "deploy" not in service(record(), Origin("s", "SGLang 0.5.23", simulated=False))
    assert expanded(service(record(), Origin("s", "?", simulated=False))["image"]).endswith(":latest")


HOSTILE = ("$HOME", "${X}", "${X:-y}", "$$", 'it\'s "quoted"', "two\nlines", "`id`", "$(id)", "#{x}", "a: b", "\t")


@pytest.mark.parametrize("value", HOSTILE)
def test_whatever_a_user_gave_arrives_in_arguments_variables_and_mounts(value):
    argv = ("python3", "-m", "sglang.launch_server", "--model-path", f"/models/{value}", "--x", value)
    made = service(record(argv=argv, env={"SPECTUNE_X": value}), Origin(value, f"SGLang {value}", simulated=True))
    assert [expanded(word) for word in made["command"]][3:7] == ["--model-path", f"/models/{value}", "--x", value]
    assert expanded(made["environment"]["SPECTUNE_X"]) == value
    assert expanded(made["volumes"][0]["source"]) == expanded(made["volumes"][0]["target"]) == f"/models/{value}"
    assert expanded(made["image"]) == "lmsysorg/sglang:latest"


@settings(max_examples=60, deadline=None)
@given(st.lists(words, min_size=1), st.dictionaries(st.from_regex(r"SPECTUNE_[A-Z]{1,6}", fullmatch=True), words))
def test_hostile_values_arrive_as_they_are(values, env):
    values = [value for value in values if not value.startswith("--")] or ["x"]
    made = service(record(argv=("python3", "-m", "sglang.launch_server", "--x", *values), env=env))
    assert [expanded(word) for word in made["command"]][3:-4] == ["--x", *values]
    assert {name: expanded(value) for name, value in made.get("environment", {}).items()} == env


def test_secrets_are_named_and_passed_on_from_the_callers_shell(tmp_path):
    pick = record(argv=(*ARGV, "--api-key", "s3cret-value"), env={"HF_TOKEN": "hf_secret-value"})
    assert service(pick)["environment"] == {"HF_TOKEN": None}
    (files,) = export_candidates([pick], tmp_path, ORIGIN, formats=[Format.COMPOSE])
    text = files.files[Format.COMPOSE].read_text()
    assert "secret-value" not in text
    assert "s3cret" not in text
    assert "--api-key was given in the trial" in text
    assert files.files[Format.COMPOSE].name == "launch-eagle3-drafter-strong-s3-k1-n4.compose.yaml"


def test_there_is_no_image_of_the_cpu_reference_runtime_but_the_script_is_written(tmp_path):
    origin = Origin("s", "SGLang 0.5.23 on the CPU reference runtime", simulated=False)
    (files,) = export_candidates([record()], tmp_path, origin, formats=[Format.COMPOSE, Format.SHELL])
    assert "has no container image" in files.refused[Format.COMPOSE]
    assert list(tmp_path.iterdir()) == [files.shell]


def test_comments_hold_nothing_that_is_read():
    pick = record(argv=("p", "--api-key\nservices: {}", "x"))
    text = compose_file(
        pick, Launch.of(pick.command), Origin("s\nx: 1", "e\r\ny: 1", simulated=True), file_name="f.yaml"
    )
    assert list(yaml.safe_load(text)) == ["services"]
