// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// What users of the Node client do, against the cluster of KUBECONFIG.
import assert from 'node:assert/strict';
import * as k8s from '@kubernetes/client-node';

const config = new k8s.KubeConfig();
config.loadFromDefault();
assert.ok(!config.getCurrentCluster().skipTLSVerify && process.env.NODE_TLS_REJECT_UNAUTHORIZED !== '0');
const core = config.makeApiClient(k8s.CoreV1Api);
const namespace = 'default';
const map = (name, data) => ({ metadata: { name }, data });
const refused = (code, promise) => assert.rejects(promise, (e) => { assert.equal(e.code, code, e.body); return true; });
const as = (type) => k8s.setHeaderOptions('Content-Type', type);

const tests = {
  async 'an informer follows'() {
    const list = () => core.listNamespacedConfigMap({ namespace });
    const informer = k8s.makeInformer(config, '/api/v1/namespaces/default/configmaps', list);
    const seen = [];
    const gone = new Promise((resolve, reject) => {
      for (const verb of ['add', 'update', 'delete']) {
        informer.on(verb, (o) => {
          if (o.metadata.name !== 'node-watched') return;
          seen.push(verb);
          if (verb === 'delete') resolve();
        });
      }
      informer.on('error', reject);
    });
    await informer.start();
    await core.createNamespacedConfigMap({ namespace, body: map('node-watched', { a: '1' }) });
    await core.patchNamespacedConfigMap({ name: 'node-watched', namespace, body: { data: { a: '2' } } }, as('application/merge-patch+json'));
    await core.deleteNamespacedConfigMap({ name: 'node-watched', namespace });
    await gone;
    await informer.stop();
    assert.deepEqual(seen, ['add', 'update', 'delete']);
  },
  async 'patches'() {
    await core.createNamespacedConfigMap({ namespace, body: map('node-patched', { a: '1' }) });
    const body = [{ op: 'add', path: '/data/b', value: '2' }];
    const got = await core.patchNamespacedConfigMap({ name: 'node-patched', namespace, body }, as('application/json-patch+json'));
    assert.deepEqual(got.data, { a: '1', b: '2' });
  },
  async 'apply and its conflict'() {
    const apply = (fieldManager, data) => core.patchNamespacedConfigMap(
      { name: 'node-applied', namespace, fieldManager, body: { apiVersion: 'v1', kind: 'ConfigMap', ...map('node-applied', data) } },
      as('application/apply-patch+yaml'),
    );
    assert.deepEqual((await apply('one', { a: '1' })).data, { a: '1' });
    assert.deepEqual((await apply('one', { b: '2' })).data, { b: '2' });
    await refused(409, apply('two', { b: '3' }));
  },
  async 'conflicts'() {
    const made = await core.createNamespacedConfigMap({ namespace, body: map('node-fought-over', { a: '1' }) });
    await core.patchNamespacedConfigMap({ name: 'node-fought-over', namespace, body: { data: { a: '2' } } }, as('application/merge-patch+json'));
    await refused(409, core.replaceNamespacedConfigMap({ name: 'node-fought-over', namespace, body: made }));
    await refused(409, core.createNamespacedConfigMap({ namespace, body: map('node-fought-over') }));
  },
  async 'what is invalid, and what is missing'() {
    await refused(422, core.createNamespacedConfigMap({ namespace, body: map('Not a name') }));
    await refused(404, core.readNamespacedConfigMap({ name: 'nobody', namespace }));
  },
  async 'exec is refused'() {
    await core.createNamespacedPod({ namespace, body: { metadata: { name: 'node-p' }, spec: { containers: [{ name: 'c', image: 'i' }] } } });
    const exec = new k8s.Exec(config).exec(namespace, 'node-p', 'c', ['true'], null, null, null, false);
    await assert.rejects(exec, (e) => /Unexpected server response: 400/.test(e.message)); // it is on no node
  },
};
for (const [name, test] of Object.entries(tests)) {
  await test();
  console.log('ok', name);
}
process.exit(0);
