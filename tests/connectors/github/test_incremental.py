"""What a run of the GitHub connector asks for and sends: everything once, then what is new."""

from typing import Any

from connectors.github.account import Account, deleted, said
from servers.github.world import Repository


def filled(account: Account, issues: int = 3) -> Repository:
    """Make a repository with something of everything."""
    repository = account.world.add_repository("garden")
    for number in range(issues):
        account.world.add_issue(repository, f"Number {number}")
    pull = account.world.add_pull_request(repository, "Water the beans")
    account.world.add_comment(repository, 1, "Me too")
    account.world.add_comment(repository, pull["number"], "Looks good")
    account.world.add_release(repository, "v1")
    account.world.star(repository)
    return repository


def test_a_first_run_brings_something_of_everything(account: Account) -> None:
    """Each stream, and every record fits its schema as the host would hold it."""
    repository = filled(account)
    run = account.succeed()
    assert [record["login"] for record in run.records("user")] == ["octocat"]
    assert [record["full_name"] for record in run.records("repositories")] == ["octocat/garden"]
    assert [record["full_name"] for record in run.records("starred")] == ["octocat/garden"]
    assert {record["title"] for record in run.records("issues")} == {
        "Number 0",
        "Number 1",
        "Number 2",
        "Water the beans",
    }
    (pull,) = run.records("pull_requests")
    assert pull["id"] == f"{repository.item['id']}/4"
    assert pull["additions"] == 3
    assert {(record["body"], record["issue_number"]) for record in run.records("comments")} == {
        ("Me too", 1),
        ("Looks good", 4),
    }
    (release,) = run.records("releases")
    assert [asset["name"] for asset in release["assets"]] == ["v1.tar.gz"]
    (coverage,) = said(run, "DETAIL_COVERAGE")
    assert coverage["required_keys"] == coverage["hydrated_keys"] == [pull["id"]]


def test_a_second_run_is_answered_not_modified(account: Account) -> None:
    """Four lists that did not change cost no body; the two that are read whole send no record."""
    filled(account)
    first = account.succeed()
    second = account.succeed(first.state)
    assert said(second, "RECORD") == []
    not_modified = account.github.paths(304)
    assert [path.rpartition("/")[2] for path in not_modified] == ["user", "issues", "comments", "releases"]
    assert account.github.paths(200) == ["/user/repos", "/user/starred"]
    assert second.state == first.state


def test_what_changed_comes_alone(account: Account) -> None:
    """One issue of many was edited, and a pull request commented on."""
    repository = filled(account, issues=30)
    first = account.succeed()
    account.world.edit(repository, 7, title="Number 7, again")
    account.world.add_comment(repository, 31, "Merge it?")
    second = account.succeed(first.state)
    changed = {record["title"] for record in second.records("issues")}
    # What stands at the last second of the run before, or one before it, comes again.
    assert changed - {"Water the beans", "Number 0"} == {"Number 7, again"}
    assert "Merge it?" in {record["body"] for record in second.records("comments")}
    assert len(second.records("pull_requests")) == 1


def test_every_page_is_walked_once_and_saved(account: Account) -> None:
    """450 issues are five pages; each is behind the change that ended the page before."""
    filled(account, issues=450)
    run = account.succeed(None, "issues")
    numbers = [record["number"] for record in run.records("issues")]
    assert sorted(numbers) == list(range(1, 452))
    assert len(account.github.paths()) == 1 + 6
    assert len([m for m in said(run, "STATE") if m["stream"] == "issues"]) >= 5


def test_nothing_slips_while_pages_are_read(account: Account) -> None:
    """An issue of the first page is edited while the second is asked for: counted pages would lose another one."""
    repository = filled(account, issues=250)
    lists = 0

    def hold(path: str) -> None:
        nonlocal lists
        lists += path.endswith("/issues")
        if lists == 2:
            account.world.edit(repository, 5, title="Changed meanwhile")
            lists += 1

    account.github.hold = hold
    run = account.succeed(None, "issues")
    assert {record["number"] for record in run.records("issues")} == set(range(1, 252))
    assert "Changed meanwhile" in {record["title"] for record in run.records("issues")}


def test_many_changes_in_one_second_are_counted(account: Account) -> None:
    """There the time does not lead on, and the Link does."""
    repository = filled(account, issues=230)
    for issue in repository.issues.values():
        issue["updated_at"] = "2024-05-05T05:05:05Z"
    run = account.succeed(None, "issues")
    assert {record["number"] for record in run.records("issues")} == set(range(1, 232))


def test_a_since_that_leaves_out_its_own_second_loses_nothing(account: Account) -> None:
    """The description says `after the given time`, which may be read either way."""
    repository = filled(account, issues=230)
    for issue in repository.issues.values():
        issue["updated_at"] = "2024-05-05T05:05:05Z"
    account.github.is_exclusive = True
    run = account.succeed(None, "issues")
    assert {record["number"] for record in run.records("issues")} == set(range(1, 232))


def test_a_renamed_repository_is_followed(account: Account) -> None:
    """The list has the new name; what is asked for by the old one is answered 301."""
    repository = filled(account)
    first = account.succeed()
    account.world.rename(repository, "allotment")
    second = account.succeed(first.state)
    assert [record["full_name"] for record in second.records("repositories")] == ["octocat/allotment"]
    assert [record["full_name"] for record in second.records("starred")] == ["octocat/allotment"]
    assert deleted(second, "starred") == deleted(second, "repositories") == []


def test_a_move_between_two_requests_is_followed(account: Account) -> None:
    """The repository is renamed when its list was read already."""
    repository = filled(account)

    def hold(path: str) -> None:
        if path.endswith("/garden/issues"):
            account.github.hold = lambda _path: None
            account.world.rename(repository, "allotment")

    account.github.hold = hold
    run = account.succeed(None, "issues")
    assert len(run.records("issues")) == 4
    assert account.github.paths(301) == ["/repos/octocat/garden/issues"] * 2


def test_what_github_says_is_gone_is_deleted(account: Account) -> None:
    """A repository, a star that was taken back, a release; each is asked for by itself first."""
    repository, other = filled(account), account.world.add_repository("shed")
    account.world.star(other)
    first = account.succeed()
    del account.world.repositories[other.item["id"]]
    del account.world.stars[repository.item["id"]]
    release = repository.releases.popitem()[0]
    second = account.succeed(first.state)
    assert deleted(second, "repositories") == [str(other.item["id"])]
    assert deleted(second, "starred") == [str(repository.item["id"])]
    assert deleted(second, "releases") == [str(release)]
    third = account.succeed(second.state)
    assert said(third, "RECORD") == []


def test_what_the_list_lacks_and_github_has_stays(account: Account) -> None:
    """A repository that is not the account's own any more, and one that may not be shown for legal reasons."""
    filled(account)
    other = account.world.add_repository("shed")
    first = account.succeed(None, "repositories")
    number = other.item["id"]
    account.github.faults[f"/repositories/{number}"] = [451]
    listed: Any = account.world.repositories.pop(number)
    second = account.succeed(first.state, "repositories")
    assert deleted(second, "repositories") == []
    assert second.state == first.state
    account.world.repositories[number] = listed
