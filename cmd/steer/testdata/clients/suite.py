# Copyright The Steer Authors.
# SPDX-License-Identifier: Apache-2.0
"""What users of the Python client do, against the cluster of KUBECONFIG."""

import json
import threading

from kubernetes import client, config, dynamic, watch
from kubernetes.client.rest import ApiException
from kubernetes.stream import stream

config.load_kube_config()
assert client.Configuration.get_default_copy().verify_ssl
core = client.CoreV1Api()
api = client.ApiClient()


def refused(status, call, *args, **kwargs):
    """Demands that a call is refused with a status, and returns the error."""
    try:
        call(*args, **kwargs)
    except ApiException as e:
        assert e.status == status, (e.status, e.body)
        return e
    raise AssertionError("not refused with %d" % status)


def config_map(name, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name), data=data)


def test_watch():
    seen = []
    begin = core.list_namespaced_config_map("default").metadata.resource_version

    def follow():
        for event in watch.Watch().stream(
            core.list_namespaced_config_map, "default", resource_version=begin, timeout_seconds=30
        ):
            if event["object"].metadata.name == "watched":
                seen.append(event["type"])
                if event["type"] == "DELETED":
                    return

    follower = threading.Thread(target=follow)
    follower.start()
    core.create_namespaced_config_map("default", config_map("watched", a="1"))
    core.patch_namespaced_config_map("watched", "default", {"data": {"a": "2"}})
    core.delete_namespaced_config_map("watched", "default")
    follower.join()
    assert seen == ["ADDED", "MODIFIED", "DELETED"], seen


def test_patches():
    core.create_namespaced_config_map("default", config_map("patched", a="1"))
    got = core.patch_namespaced_config_map("patched", "default", {"data": {"b": "2"}})
    assert got.data == {"a": "1", "b": "2"}, got.data
    got = core.patch_namespaced_config_map("patched", "default", [{"op": "remove", "path": "/data/a"}])
    assert got.data == {"b": "2"}, got.data


def test_apply():
    maps = dynamic.DynamicClient(api).resources.get(api_version="v1", kind="ConfigMap")

    def apply(manager, **data):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": data}
        # As text: version 22 does not encode bodies of this media type itself.
        return maps.server_side_apply(body=json.dumps(body), namespace="default", name="applied", field_manager=manager)

    assert apply("one", a="1").to_dict()["data"] == {"a": "1"}
    assert apply("one", b="2").to_dict()["data"] == {"b": "2"}
    refused(409, apply, "two", b="3")


def test_conflict():
    made = core.create_namespaced_config_map("default", config_map("fought-over", a="1"))
    core.patch_namespaced_config_map("fought-over", "default", {"data": {"a": "2"}})
    error = refused(409, core.replace_namespaced_config_map, "fought-over", "default", made)
    assert '"reason":"Conflict"' in error.body.replace(" ", ""), error.body
    error = refused(409, core.create_namespaced_config_map, "default", config_map("fought-over"))
    assert '"reason":"AlreadyExists"' in error.body.replace(" ", ""), error.body


def test_invalid():
    error = refused(422, core.create_namespaced_config_map, "default", config_map("Not a name"))
    assert '"reason":"Invalid"' in error.body.replace(" ", ""), error.body


def test_missing():
    refused(404, core.read_namespaced_config_map, "nobody", "default")


def test_exec_is_refused():
    spec = client.V1PodSpec(containers=[client.V1Container(name="c", image="i")])
    core.create_namespaced_pod("default", client.V1Pod(metadata=client.V1ObjectMeta(name="p"), spec=spec))
    try:
        stream(core.connect_get_namespaced_pod_exec, "p", "default", command="true", stdout=True)
    except ApiException as e:
        assert "Handshake status 400 " in str(e), e  # it is on no node
        return
    raise AssertionError("exec in a Pod that runs nowhere")


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print("ok", name)
