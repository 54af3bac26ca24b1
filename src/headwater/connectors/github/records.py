"""Records of what GitHub answers: the fields that are kept, under GitHub's own names.

A member that is missing or of another kind is passed on as it is: the schema finds it, and the host keeps that record
aside.
"""

import hashlib
import json
from typing import Any, Final

Item = dict[str, Any]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_USER: Final = _words(
    """
    id login type name company blog location email bio twitter_username html_url public_repos public_gists followers
    following created_at updated_at
    """
)
_REPOSITORY: Final = _words(
    """
    id full_name name private visibility description fork archived disabled is_template html_url clone_url homepage
    language topics default_branch size stargazers_count forks_count open_issues_count has_issues created_at updated_at
    pushed_at
    """
)
_STARRED: Final = _words("id full_name description html_url language topics fork archived")
_ISSUE: Final = _words(
    """
    id number title body state state_reason locked comments draft html_url author_association created_at updated_at
    closed_at
    """
)
_PULL: Final = _words(
    """
    number title body state draft merged merged_at merge_commit_sha html_url additions deletions changed_files commits
    comments review_comments created_at updated_at closed_at
    """
)
_COMMENT: Final = _words("id body html_url author_association created_at updated_at")
_RELEASE: Final = _words("id tag_name target_commitish name body draft prerelease html_url created_at published_at")
_ASSET: Final = _words("id name label content_type size download_count browser_download_url created_at updated_at")


def user(item: Item) -> Item:
    """The account that the token belongs to."""
    return _taken(item, _USER)


def repository(item: Item) -> Item:
    """A repository of the account."""
    licence = item.get("license")
    return {
        **_taken(item, _REPOSITORY),
        "owner": login(item.get("owner")),
        "license": licence.get("spdx_id") if isinstance(licence, dict) else None,
    }


def starred(item: Item) -> Item:
    """A star: the repository, and when it was given. What changes without the account's doing is left out."""
    return {**_taken(item["repo"], _STARRED), "starred_at": item.get("starred_at")}


def issue(item: Item, repository: Item) -> Item:
    """An issue, or a pull request as an issue."""
    milestone = item.get("milestone")
    return {
        **_taken(item, _ISSUE),
        "repository": repository["full_name"],
        "repository_id": repository["id"],
        "is_pull_request": isinstance(item.get("pull_request"), dict),
        "author": login(item.get("user")),
        "assignees": _logins(item.get("assignees")),
        "closed_by": login(item.get("closed_by")),
        "labels": [name for label in _listed(item.get("labels")) if (name := _name(label))],
        "milestone": milestone.get("title") if isinstance(milestone, dict) else None,
    }


def pull_key(number: int, repository: Item) -> str:
    """The key of a pull request: its repository's id and its number."""
    return f"{repository['id']}/{number}"


def pull_request(item: Item, key: str, repository: Item) -> Item:
    """What a pull request is beyond an issue."""
    return {
        **_taken(item, _PULL),
        "id": key,
        "repository": repository["full_name"],
        "repository_id": repository["id"],
        "author": login(item.get("user")),
        "merged_by": login(item.get("merged_by")),
        "requested_reviewers": _logins(item.get("requested_reviewers")),
        "head": _end(item.get("head")),
        "base": _end(item.get("base")),
    }


def comment(item: Item, repository: Item) -> Item:
    """A comment on an issue or a pull request."""
    number = str(item.get("issue_url", "")).rpartition("/")[2]
    return {
        **_taken(item, _COMMENT),
        "repository": repository["full_name"],
        "repository_id": repository["id"],
        "issue_number": int(number) if number.isascii() and number.isdecimal() else None,
        "author": login(item.get("user")),
    }


def release(item: Item, repository: Item) -> Item:
    """A release, with its files."""
    return {
        **_taken(item, _RELEASE),
        "repository": repository["full_name"],
        "repository_id": repository["id"],
        "author": login(item.get("author")),
        "assets": [_taken(asset, _ASSET) for asset in _listed(item.get("assets")) if isinstance(asset, dict)],
    }


def mark(record: Item) -> str:
    """Return what changes whenever a record does, short enough for a cursor over many."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:12]


def login(person: Any) -> str | None:
    """Return somebody's login; an account that is gone has none."""
    return person.get("login") if isinstance(person, dict) else None


def _logins(people: Any) -> list[str]:
    return [name for person in _listed(people) if (name := login(person))]


def _name(label: Any) -> str | None:
    return label.get("name") if isinstance(label, dict) else label


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _end(branch: Any) -> Item | None:
    """One end of a pull request; the repository of a fork may be gone."""
    if not isinstance(branch, dict):
        return None
    repo = branch.get("repo")
    return {"ref": branch.get("ref"), "sha": branch.get("sha"), "repository": (repo or {}).get("full_name")}


def _taken(item: Item, names: tuple[str, ...]) -> Item:
    return {name: item.get(name) for name in names}
