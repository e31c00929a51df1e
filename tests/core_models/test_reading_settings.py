"""Typed settings: files that are no YAML, values of the command line, and where `key=value,…` is cut."""

import pytest

from core_models.settings import ConfigError, read_value, read_yaml, settings_in, write_yaml


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no such file"),
        (b"a: [1", "not readable as YAML"),
        (b"- 1", "must be a mapping of keys to values, not list"),
        (b"\xff\xfe", "not readable as YAML"),
    ],
)
def test_unreadable_yaml_is_refused_with_its_path(tmp_path, content, message):
    path = tmp_path / "config.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=f"{path}: {message}"):
        read_yaml(path)


@pytest.mark.parametrize("merged", [False, True], ids=["lists", "merged mappings"])
def test_aliases_of_aliases_are_refused_before_they_are_followed(tmp_path, merged):
    own, again = ("{{<<: [{}]}}", "{{a{}: 1}}") if merged else ("[{}]", "[x{}]")
    lines = [f"k0: &k0 {again.format(0)}"]
    lines += [f"k{n}: &k{n} {own.format(', '.join([f'*k{n - 1}'] * 9))}" for n in range(1, 12)]
    path = tmp_path / "config.yaml"
    path.write_text("\n".join(lines))
    with pytest.raises(ConfigError, match=f"{path}: not readable as YAML: 99 aliases, but at most 16 are allowed"):
        read_yaml(path)
    path.write_text("\n".join(lines[:2]) + "\n# " + "* " * 100)
    assert read_yaml(path).keys() == {"k0", "k1"}


def test_what_is_written_is_read_again_in_its_order(tmp_path):
    content = {"b": "é", "a": [1, 2.5, None], "c": {"z": True, "y": "1"}}
    write_yaml(tmp_path / "file.yaml", content)
    assert list(read_yaml(tmp_path / "file.yaml").items()) == list(content.items())
    assert [path.name for path in tmp_path.iterdir()] == ["file.yaml"]


def test_commas_in_brackets_cut_nothing_and_values_are_yaml():
    parts = settings_in(" width=64, losses=[bow,bca],,norm=post ")
    assert parts == ["width=64", "losses=[bow,bca]", "norm=post"]
    values = [read_value(part.partition("=")[2], part) for part in parts]
    assert values == [64, ["bow", "bca"], "post"]
    with pytest.raises(ConfigError, match=r"--config a: the value is not readable as YAML \(.*\); quote it"):
        read_value("[1", "--config a")
