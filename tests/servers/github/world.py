"""What the provider has: one account with its repositories, and each change at a second of its own."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from servers.github.shapes import shaped

ACCOUNT = "octocat"
_BEGINNING = datetime(2024, 1, 1, tzinfo=UTC)
Item = dict[str, Any]


@dataclass
class Repository:
    """A repository and what it has, by id or number."""

    item: Item
    issues: dict[int, Item] = field(default_factory=dict)
    pulls: dict[int, Item] = field(default_factory=dict)
    comments: dict[int, Item] = field(default_factory=dict)
    releases: dict[int, Item] = field(default_factory=dict)


class World:
    """The account. Its methods are what people do on GitHub."""

    def __init__(self) -> None:
        self._seconds, self._ids = count(), count(1000)
        self.token = "ghp_a-token-of-the-tests"
        self.repositories: dict[int, Repository] = {}
        self.former_names: dict[str, int] = {}
        self.stars: dict[int, Item] = {}
        self.account = shaped("private-user", login=ACCOUNT, id=1, created_at=self.now(), updated_at=self.now())
        self._author = shaped("simple-user", login=ACCOUNT, id=1)

    def now(self) -> str:
        """Return the next second."""
        return (_BEGINNING + timedelta(seconds=next(self._seconds))).isoformat().replace("+00:00", "Z")

    def add_repository(self, name: str, **members: Any) -> Repository:
        """Make a repository of the account."""
        at, number = self.now(), next(self._ids)
        named = {"id": number, "name": name, "full_name": f"{ACCOUNT}/{name}", "owner": self._author}
        times = {"created_at": at, "updated_at": at, "pushed_at": at}
        made = Repository(shaped("repository", **{**named, **times, "private": False, **members}))
        self.repositories[number] = made
        return made

    def rename(self, repository: Repository, name: str) -> None:
        """Rename a repository; its former name leads to it."""
        self.former_names[repository.item["full_name"]] = repository.item["id"]
        repository.item.update(name=name, full_name=f"{ACCOUNT}/{name}", updated_at=self.now())

    def add_issue(self, repository: Repository, title: str = "An issue", **members: Any) -> Item:
        """Open an issue."""
        at, number = self.now(), len(repository.issues) + 1
        issue = shaped(
            "issue",
            **{
                "id": next(self._ids),
                "number": number,
                "title": title,
                "state": "open",
                "user": self._author,
                "labels": [{"id": 7, "name": "bug"}],
                "created_at": at,
                "updated_at": at,
                "author_association": "OWNER",
                **members,
            },
        )
        repository.issues[number] = issue
        return issue

    def add_pull_request(self, repository: Repository, title: str = "A pull request") -> Item:
        """Open a pull request; it is an issue too."""
        urls = dict.fromkeys(("url", "diff_url", "html_url", "patch_url"), "https://github.invalid/")
        issue = self.add_issue(repository, title, pull_request=urls)
        given = {name: issue[name] for name in ("number", "title", "state", "created_at", "updated_at")}
        end = {**shaped("pull-request")["base"], "ref": "main", "repo": repository.item, "user": self._author}
        members = {"user": self._author, "head": end, "base": end, "author_association": "OWNER", "additions": 3}
        repository.pulls[issue["number"]] = shaped("pull-request", id=next(self._ids), **given, **members)
        return issue

    def edit(self, repository: Repository, number: int, **members: Any) -> None:
        """Change an issue, and its pull request with it."""
        at = self.now()
        for found in (repository.issues, repository.pulls):
            if number in found:
                found[number].update(members, updated_at=at)

    def add_comment(self, repository: Repository, number: int, body: str = "A comment") -> Item:
        """Comment on an issue, which changes it."""
        at = self.now()
        url = f"https://github.invalid/repos/{repository.item['full_name']}/issues/{number}"
        times = {"created_at": at, "updated_at": at}
        made = shaped("issue-comment", id=next(self._ids), body=body, issue_url=url, user=self._author, **times)
        repository.comments[made["id"]] = made
        repository.issues[number].update(updated_at=at, comments=repository.issues[number]["comments"] + 1)
        return made

    def add_release(self, repository: Repository, tag: str) -> Item:
        """Publish a release."""
        at = self.now()
        asset = shaped("release-asset", id=next(self._ids), name=f"{tag}.tar.gz", size=10)
        members = {"name": tag, "author": self._author, "created_at": at, "published_at": at, "assets": [asset]}
        made = shaped("release", id=next(self._ids), tag_name=tag, **members)
        repository.releases[made["id"]] = made
        return made

    def star(self, repository: Repository) -> None:
        """Give a star."""
        self.stars[repository.item["id"]] = shaped("starred-repository", starred_at=self.now(), repo=repository.item)
