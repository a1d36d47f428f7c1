# SPDX-License-Identifier: Apache-2.0
"""Tests links along predicted motion, in crowds, and between tracks. The tests of results in trackpy 0.7's
test_predict.py, and its adaptive tests of test_linking.py, are adapted here:

  - test_null_predict, test_fail_predict: without prediction
  - test_simple_predict, test_big_predict, test_predict_newparticles, test_predict_memory: NearestVelocity, Drift and
    ChannelPredict of both axes
  - test_initial_guess: one velocity in place of samples at points; a wrong one fails; samples at points for the
    velocities of a channel (trackpy's profile)
  - test_pos_columns: two particles that cross; the order of columns cannot be chosen here
  - in trackpy, the existing frames are successive, whatever their numbers; here `memory` bridges missing numbers
  - test_adaptive_range as it is; test_adaptive_fail, with the error that is ours; test_adaptive_subnet: its result, not
    the calls that lead to it
Left out: test_subnet_fail and test_oversize_fail (larger groups are solved), instrumented predictors, other entry
points of trackpy.
"""
import numpy as np
import pytest

import cleave


def frame(n, side=3, per_frame=(-1.0, 1.0)):
    y, x = np.mgrid[:side, :side] * 100.0
    return np.stack([np.full(side * side, n), y.ravel() + (n - 100) * per_frame[0],
                     x.ravel() + (n - 100) * per_frame[1]], axis=1)


def lengths(frames, search, **options):
    particle = cleave.link(np.concatenate(frames), search, **options)
    return np.bincount(particle)


def flow_of(predict):
    """Returns the options of a predictor by its name, and the flow that it can follow."""
    if predict.startswith("channel"):
        axis = predict[-1]
        flow = (0.0, 1.4142) if axis == "x" else (1.4142, 0.0)
        return {"predict": "channel", "channel_bin": 3, "channel_least": 3, "channel_axis": axis}, flow
    return {"predict": predict}, (-1.0, 1.0)


BOTH = pytest.mark.parametrize("predict", ["velocity", "drift"])
ALL = pytest.mark.parametrize("predict", ["velocity", "drift", "channel-x", "channel-y"])


def test_no_motion_is_no_prediction():
    assert (lengths([frame(0), frame(25)], 45, memory=24) == 2).all()
    assert not (lengths([frame(0), frame(25), frame(65)], 45, memory=49) == 3).all()


def follow(predict, *, own=None):
    options, flow = flow_of(predict)
    flow = own or flow
    frames = [frame(0, 3, flow), frame(25, 3, flow), frame(65, 3, flow)]
    assert (lengths(frames, 45, memory=49, **options) == 3).all()
    wide = [frame(0, 10, flow), frame(25, 10, flow), frame(75, 10, flow)]
    assert (lengths(wide, 45, memory=49, **options) == 3).all()


@ALL
def test_motion_that_goes_on_is_followed(predict):
    follow(predict)


@BOTH
@pytest.mark.parametrize("flow", [(0.0, 1.4142), (1.4142, 0.0)])
def test_motion_along_an_axis_is_followed(predict, flow):
    follow(predict, own=flow)


@pytest.mark.parametrize("axis", "xy")
def test_a_channel_goes_along_its_axis_alone(axis):
    with pytest.raises(AssertionError):
        follow("channel-" + axis, own=(1.4142, 0.0) if axis == "x" else (0.0, 1.4142))


@ALL
def test_new_particles_have_the_velocity_of_the_others(predict):
    options, flow = flow_of(predict)
    frames = [frame(0, 3, flow), frame(25, 3, flow), frame(65, 4, flow), frame(105, 4, flow)]
    assert not (lengths(frames, 45, memory=39, **options) == 1).any()


@ALL
def test_a_particle_that_was_unseen_is_expected_where_it_has_gone(predict):
    options, flow = flow_of(predict)
    options.pop("channel_least", None)
    if "channel_bin" in options:
        options["channel_least"] = 2
    frames = [frame(n, 3, flow) for n in (0, 25, 65, 105, 145)]
    assert (lengths(frames, 45, memory=39, **options) == 5).all()
    frames[3] = np.delete(frames[3], 5, axis=0)
    assert sorted(lengths(frames, 45, memory=39, **options)) == [1, 3] + [5] * 8
    assert sorted(lengths(frames, 45, memory=79, **options)) == [4] + [5] * 8


def test_the_first_velocities_of_a_channel_can_be_given():
    y, x = (axis.ravel() for axis in np.mgrid[:4, :4] * 100.0)
    frames = [np.stack([np.full(16, n), y, x + 0.0045 * n * y], axis=1) for n in (0, 100, 200, 300)]
    wall = np.arange(4) * 100.0
    profile = {"velocity": np.stack([0 * wall, 0.0045 * wall], 1), "velocity_at": np.stack([wall, 0 * wall], 1)}
    # Bins of 110, so that no particle is at the border of one
    channel = {"predict": "channel", "channel_bin": 110, "channel_least": 3, "memory": 99}
    assert (lengths(frames, 45, **channel, **profile) == 4).all()
    assert not (lengths(frames, 45, **channel) == 4).all()


@BOTH
def test_the_first_velocity_can_be_given(predict):
    frames = [frame(0), frame(100), frame(200)]
    assert (lengths(frames, 45, memory=99, predict=predict, velocity=(-1, 1)) == 3).all()
    assert not (lengths(frames, 45, memory=99, predict=predict, velocity=(1, -1)) == 3).all()
    deep = [np.insert(f, 1, 7.0, axis=1) for f in frames]
    assert (lengths(deep, 45, memory=99, predict=predict, velocity=(0, -1, 1)) == 3).all()
    assert not (lengths(deep, 45, memory=99, predict=predict, velocity=(1, -1, 1)) == 3).all()


@BOTH
def test_first_velocities_at_places_can_be_given(predict):
    frames = [frame(0), frame(100), frame(200)]
    at = {"velocity": [(-1, 1)] * 2, "velocity_at": [(0, 0), (300, 300)]}
    assert (lengths(frames, 45, memory=99, predict=predict, **at) == 3).all()
    with pytest.raises(cleave.ShapeError, match="velocity_at"):
        cleave.link(frames[0], 45, predict=predict, velocity=[(1, 1)] * 3, velocity_at=[(0, 0)] * 2)


def contracting_grid():
    """Returns two frames of a grid of 441 points; in the second frame, the outermost points lie where their inner
    neighbours were."""
    side = np.arange(-20, 21, 2.0)
    y, x = (axis.ravel() for axis in np.meshgrid(side, side, indexing="ij"))
    return np.concatenate([np.stack([np.full(len(y), n), y * f, x * f], 1) for n, f in ((0, 1), (1, 0.9))])


def test_crowds_are_linked_with_a_shorter_range():
    rows = contracting_grid()
    particle = cleave.link(rows, 2, adaptive_step=0.8, adaptive_stop=0.64)
    first, second = particle[:441], particle[441:]
    lost = np.abs(rows[:441][~np.isin(first, second), 1:])
    new = np.abs(rows[441:][~np.isin(second, first), 1:])
    assert len(lost) and len(new) and len(lost) < 441
    assert (lost > 19).any(axis=1).all()  # the outermost particles are lost
    assert np.isclose(new, 9).any(axis=1).all()  # the particles in the middle are new
    with pytest.raises(cleave.ArgumentError, match="adaptive_stop 1.84"):
        cleave.link(rows, 2, adaptive_stop=1.84)
    np.testing.assert_array_equal(cleave.link(rows, 2, adaptive_stop=0.64, adaptive_group=500), cleave.link(rows, 2))


def test_a_crowd_falls_apart():
    spots = [(0, 0, 0.0), (0, 0, 1.0), (1, 0, 0.1), (1, 0, 1.1)]
    assert cleave.link(spots, 8, adaptive_step=0.25, adaptive_stop=0.25, adaptive_group=1).tolist() == [0, 1, 0, 1]
    far = [(0, 0, 0.0), (0, 0, 1.0), (1, 0, 0.9), (1, 0, 1.9)]
    assert cleave.link(far, 8, adaptive_step=0.25, adaptive_stop=0.25, adaptive_group=1).tolist() == [0, 1, 1, 2]
    for wrong in ({"adaptive_stop": 9}, {"adaptive_stop": -1}, {"adaptive_stop": 1, "adaptive_step": 1.0}):
        with pytest.raises(cleave.ArgumentError, match="adaptive_st"):
            cleave.link(spots, 8, **wrong)


def test_splits_and_merges():
    """One particle splits at frame 5 (y) and merges with another one at frame 9, which ends; one particle appears from
    nowhere."""
    main = [(n, 0.0, 1.0 * n) for n in range(15)]
    split = [(n, 2.0 + (n - 5), 1.0 * n) for n in range(5, 12)]
    merge = [(n, -1.5 - (8 - n), 1.0 * n) for n in range(2, 9)]
    alone = [(n, 50.0, 50.0) for n in range(3, 7)]
    rows = np.array(main + split + merge + alone)
    particle = np.repeat([0, 1, 2, 3], [15, 7, 7, 4])
    order = np.random.default_rng(2).permutation(len(rows))
    found = cleave.branches(rows[order], particle[order], 3.0)
    assert found["kind"].tolist() == [0, 1]
    assert rows[order][found["from"], 0].tolist() == [4, 8] and rows[order][found["to"], 0].tolist() == [5, 9]
    assert particle[order][found["from"]].tolist() == [0, 2] and particle[order][found["to"]].tolist() == [1, 0]
    assert len(cleave.branches(rows, particle, 1.0)) == 0
    deep = np.insert(rows, 1, 4.0 * (particle == 1), axis=1)  # the particle that splits is too far away in z
    assert cleave.branches(deep, particle, 3.0)["kind"].tolist() == [1]
    assert (cleave.link(rows, 1.5) >= 0).all() and len(cleave.branches(np.empty((0, 3)), np.empty(0, int), 3.0)) == 0
    with pytest.raises(cleave.ArgumentError, match="two spots"):
        cleave.branches(rows, 0 * particle, 3.0)
    with pytest.raises(cleave.ArgumentError, match="branches: particle: number 0 is 0.5, but whole numbers of 64 bits"):
        cleave.branches(rows, particle + 0.5, 3.0)


def test_a_track_that_ends_does_not_split():
    """One particle ends where another one begins a frame later. Neither continues, so there is no branch."""
    rows = [(0, 0, 0), (1, 0, 0), (2, 2, 0), (3, 2, 0)]
    assert len(cleave.branches(rows, [0, 0, 1, 1], 3.0)) == 0


def test_of_splits_the_best_assignment_is_taken():
    """Two new tracks may split from two that continue. The nearest spot of both goes to the new track that has no other
    choice."""
    rows = [(0, 0, 0), (1, 0, 0), (0, 0, 10), (1, 0, 10), (1, 0, 4.5), (1, 0, -6.0)]
    found = cleave.branches(rows, [0, 0, 1, 1, 2, 3], 7)
    assert sorted(zip(found["from"].tolist(), found["to"].tolist())) == [(0, 5), (2, 4)]


def test_particles_that_cross_keep_their_ways():
    spots = {"frame": [1, 2, 3, 4, 1, 2, 3, 4], "x": [0, 10, 20, 30, 10, 15, 20, 25],
             "y": [0, 10, 20, 30, 30, 20, 10, 0]}
    assert cleave.link(spots, 100, predict="velocity").tolist() == [0] * 4 + [1] * 4


def drifting(seed, drift, shear=0.0, count=400, frames=60):
    """Returns Brownian motion in a flow: rows of frame, z, y, x, and the true particle of each row."""
    rng = np.random.default_rng(seed)
    place = rng.uniform(0, 300, (count, 3)) * (0.2, 1, 1)
    rows, who = [], []
    for n in range(frames):
        seen = rng.uniform(size=count) > 0.05
        rows.append(np.insert(place[seen], 0, n, axis=1))
        who.append(np.flatnonzero(seen))
        place += rng.normal(0, 0.7, place.shape)
        place[:, 1] += drift + shear * place[:, 2]
    return np.concatenate(rows), np.concatenate(who)


def right_links(particle, rows, who):
    """Returns the fraction of true links (one frame apart) that were found."""
    last, good, all_links = {}, 0, 0
    for number, n, name in zip(particle, rows[:, 0], who):
        if name in last and last[name][0] == n - 1:
            all_links += 1
            good += last[name][1] == number
        last[name] = (n, number)
    return good / all_links


@pytest.mark.parametrize("predict,drift,shear", [("drift", 9.0, 0.0), ("velocity", 9.0, 0.0), ("velocity", 0.0, 0.03)])
def test_flows_are_followed(predict, drift, shear):
    rows, who = drifting(3, drift, shear)
    plain = cleave.link(rows, 6.0, memory=2)
    followed = cleave.link(rows, 6.0, memory=2, predict=predict, velocity=(drift, 0))
    assert right_links(followed, rows, who) > 0.97 and right_links(plain, rows, who) < 0.75


def test_the_order_of_the_input_does_not_matter():
    rows, _ = drifting(4, 5.0, 0.01, 100, 20)
    order = np.random.default_rng(1).permutation(len(rows))
    for predict in ("velocity", "drift"):
        want = cleave.link(rows, 8.0, memory=1, predict=predict)
        np.testing.assert_array_equal(cleave.link(rows[order], 8.0, memory=1, predict=predict), want[order])


def test_wrong_predictions_are_refused():
    with pytest.raises(cleave.ArgumentError, match="predict"):
        cleave.link([[0, 1, 1]], 2, predict="crystal ball")
    with pytest.raises(cleave.ArgumentError, match="guess_velocity"):
        cleave.link([[0, 1, 1]], 2, predict="drift", velocity=(float("nan"), 0))
    with pytest.raises(cleave.ShapeError, match="velocity"):
        cleave.link([[0, 1, 1]], 2, predict="drift", velocity=3.0)
