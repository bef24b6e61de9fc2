import json
import subprocess

import pytest
import yaml
from export_samples import ARGV, record
from hypothesis import example, given
from hypothesis import strategies as st

from spectune.export import export_candidates
from spectune.export.config_file import NOT_IN_CONFIG, config_file
from spectune.export.header import Origin
from spectune.export.launch import Launch

ORIGIN = Origin("study", "SGLang", simulated=False)
PARSE = """
import json, sys
from sglang.srt.server_args import prepare_server_args
from sglang.srt.utils.server_args_config_parser import ConfigArgumentMerger
from sglang.srt.server_args import ServerArgs
import argparse
both = [prepare_server_args(words) for words in json.loads(sys.argv[1])]
parser = argparse.ArgumentParser()
ServerArgs.add_cli_args(parser)
refused = ConfigArgumentMerger(parser).unsupported_actions
fields = [{name: repr(getattr(args, name)) for name in args.__struct_fields__} for args in both]
print(json.dumps({"fields": fields, "refused": sorted(refused)}))
"""


def config_of(pick):
    return config_file(pick, Launch.of(pick.command), ORIGIN, file_name="launch-x.yaml")


def test_entries_are_arguments_without_dashes():
    assert yaml.safe_load(config_of(record())) == {
        "model-path": "/models/target",
        "cuda-graph-bs-decode": [1, 2, 4],
        "skip-tokenizer-init": True,
        "speculative-algorithm": "EAGLE3",
        "speculative-num-steps": 3,
        "host": "127.0.0.1",
        "port": 30000,
    }


@example(["\x85"])  # a line end to YAML
@given(
    st.lists(
        st.one_of(
            st.text(st.characters(exclude_categories=["Cs"])),
            st.sampled_from(["1", "1e-05", "true", "0.85", "nan", "null", "1_0", "~", "0x1"]),
        ),
        min_size=1,
    )
)
def test_every_value_comes_back_as_the_same_words(values):
    values = [value for value in values if not value.startswith("--")] or ["x"]
    entry = yaml.safe_load(config_of(record(argv=("p", "--x", *values))))["x"]
    words = entry if isinstance(entry, list) else [entry]
    assert not any(isinstance(word, bool) for word in words)
    assert [str(word) for word in words] == values


def test_the_environment_and_what_the_file_cannot_carry_stand_in_comments():
    pick = record(
        argv=(*ARGV, "--disable-cuda-graph"),
        env={"NCCL_ALGO": "allreduce:ring", "ODD": "a\nb: c"},
        unset=["NCCL_PROTO"],
    )
    text = config_of(pick)
    assert "#   unset NCCL_PROTO\n#   export NCCL_ALGO=allreduce:ring\n" in text
    assert "see the .sh file" in text
    assert "# start: python3 -m sglang.launch_server --config launch-x.yaml --disable-cuda-graph\n" in text
    assert "disable-cuda-graph" not in yaml.safe_load(text)
    assert "b" not in yaml.safe_load(text)


@pytest.mark.engine
def test_sglang_reads_the_file_as_the_launch_itself(cpu_runtime, tmp_path):
    argv = (*ARGV[:3], "--model-path", str(tmp_path), "--device", "cpu", *ARGV[5:], "--mem-fraction-static", "0.1",
            "--speculative-draft-model-path", "it's $(here): #1", "--speculative-eagle-topk", "1",
            "--speculative-num-draft-tokens", "4", "--cuda-graph-config", '{"decode": {"bs": [1, 2]}}')  # fmt: skip
    pick = record(argv=argv)
    (files,) = export_candidates([pick], tmp_path / "export", study="s", engine="SGLang", simulated=False)
    plain = [word for option in Launch.of(pick.command).options for word in option.words]
    asked = [["--config", str(files.config)], [*plain, "--host", "127.0.0.1", "--port", "30000"]]
    answer = subprocess.run(
        [cpu_runtime.python, "-c", PARSE, json.dumps(asked)],
        check=False,
        env=cpu_runtime.env,
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stderr
    told = json.loads(answer.stdout.splitlines()[-1])
    assert told["fields"][0] == told["fields"][1]
    assert told["fields"][0]["speculative_num_steps"] == "3"
    assert {name.replace("_", "-") for name in told["refused"]} == NOT_IN_CONFIG
