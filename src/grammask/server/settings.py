"""What can be configured: flags win over the environment (``GRAMMASK_*``), that over a TOML file, over defaults."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource


class HttpSettings(BaseSettings):
    """What the server and the proxy have in common."""

    model_config = SettingsConfigDict(env_prefix="GRAMMASK_", extra="forbid", frozen=True)
    toml_file: ClassVar[Path | None] = None

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    api_keys: tuple[str, ...] = Field((), description="Keys of which a client must send one as a bearer token.")
    no_auth: bool = Field(False, description="Listen on an address that others can reach, without keys.")
    allowed_hosts: tuple[str, ...] = Field((), description="Values of the Host header to accept; empty accepts all.")
    cors_origins: tuple[str, ...] = Field((), description="Origins of web pages that may call the server.")
    max_body_bytes: int = Field(2 * 1024 * 1024, ge=1024, description="Longest body of a request.")
    request_timeout: float = Field(600.0, gt=0, description="Seconds that one request may take, waiting included.")
    shutdown_timeout: float = Field(
        30.0, ge=0, description="Seconds that running requests get after SIGTERM or Ctrl-C."
    )
    log_format: Literal["text", "json"] = Field("text", description="Lines for people or for programs.")
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_content: bool = Field(False, description="Write prompts and outputs into the log, too.")
    max_schema_bytes: int = Field(256 * 1024, ge=64, description="Longest constraint, as JSON.")
    compile_seconds: float = Field(5.0, gt=0, description="Seconds that compiling one constraint may take.")
    compile_expressions: int = Field(300_000, ge=1000, description="Expressions that one constraint may add.")
    compile_cache_entries: int = Field(256, ge=1, description="Compiled constraints that are kept.")
    whitespace: Literal["flexible", "compact", "python"] = Field(
        "flexible", description="Blanks in JSON: anywhere, nowhere, or after commas and colons."
    )

    @field_validator("api_keys")
    @classmethod
    def _keys_are_usable(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        if any(not key.isascii() or not key.strip() or key != key.strip() for key in keys):
            raise ValueError("an API key is printable ASCII without blanks around it")
        return keys

    @model_validator(mode="after")
    def _is_protected(self) -> HttpSettings:
        if not (self.is_loopback or self.api_keys or self.no_auth):
            raise ValueError(
                f"{self.host} can be reached from other machines, and no API key is set: "
                "set api_keys (--api-key, GRAMMASK_API_KEYS), or no_auth (--no-auth) if something else guards the port"
            )
        return self

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, cls.toml_file)


class ServerSettings(HttpSettings):
    """``grammask serve``."""

    backend: Literal["grammask", "vllm"] = Field("grammask", description="What runs the model: this server, or vLLM's.")
    vllm_python: Path | None = Field(None, description="Python that has vLLM; by default the one that runs grammask.")
    vllm_arguments: tuple[str, ...] = Field((), description="Further arguments for vLLM's server.")
    model: str = Field("smollm2", description='"smollm2", a folder, a .gguf file, or a hub id.')
    served_name: str | None = Field(None, description="Name that clients use; by default that of the model.")
    device: str | None = Field(None, description="torch device.")
    dtype: str | None = Field(None, description="torch dtype by name.")
    threads: int | None = Field(None, ge=1, description="Threads of torch.")
    tool_format: str = Field("auto", description="How the model writes tool calls; auto reads its chat template.")
    max_sequences: int = Field(16, ge=1, le=256, description="Outputs written at the same time.")
    max_waiting: int = Field(64, ge=0, description="Outputs that may wait; more are refused with status 429.")
    max_prompt_tokens: int | None = Field(None, ge=1, description="Longest prompt; the model's context bounds it, too.")
    max_output_tokens: int = Field(4096, ge=1, description="Most tokens of one output that a request may ask for.")
    default_max_tokens: int = Field(1024, ge=1, description="Where a request sets no limit.")
    never_cut: bool = Field(
        True, description="Structured outputs are completed within their limit; false cuts them there, as others do."
    )
    mask_seconds: float = Field(2.0, gt=0, description="Processor time that the masks of one output may take.")
    prefill_chunk: int = Field(256, ge=16, description="Prompt tokens read between two steps of the others.")
    cache_bytes: int = Field(256 * 1024 * 1024, ge=1 << 20, description="States and masks that constraints share.")

    @model_validator(mode="after")
    def _is_meant_for_vllm(self) -> ServerSettings:
        if self.backend != "vllm" and (self.vllm_arguments or self.vllm_python):
            given = " ".join(self.vllm_arguments) or f"vllm_python={self.vllm_python}"
            raise ValueError(f"{given!r} is for vLLM alone: add --backend vllm, or leave it out")
        return self


class ProxySettings(HttpSettings):
    """``grammask proxy``."""

    upstream: str = Field(description="Base URL of an OpenAI-compatible endpoint, such as http://host:8080/v1.")
    upstream_key: str | None = Field(None, description="API key for the upstream.")
    attempts: int = Field(3, ge=1, le=10, description="Answers to ask for before giving up, the first included.")
    upstream_tools: bool = Field(True, description="The upstream takes tools; if not, they go into the prompt.")
    upstream_timeout: float = Field(120.0, gt=0, description="Seconds that one call of the upstream may take.")


def load_settings(kind: type[HttpSettings], config: Path | None, flags: dict[str, Any]) -> Any:
    """Settings of a kind from all sources.

    Args:
        config: a TOML file, if there is one.
        flags: what the command line says; None stands for what it does not say.

    Raises:
        ValueError: a value that is not allowed, or an unknown name; the message names it. The file is not TOML.
        OSError: the file cannot be read.
    """
    if config is not None:
        config.open("rb").close()
    configured = type(kind.__name__, (kind,), {"toml_file": config, "__module__": kind.__module__})
    return configured(**{name: value for name, value in flags.items() if value is not None})
