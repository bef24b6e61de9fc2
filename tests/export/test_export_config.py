import yaml
from export_samples import ARGV, record
from hypothesis import example, given
from hypothesis import strategies as st

from spectune.export.config_file import config_file
from spectune.export.header import Origin
from spectune.export.launch import Launch

ORIGIN = Origin("study", "SGLang", simulated=False)


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
