#!/usr/bin/env bash
# Copyright The Steer Authors.
# SPDX-License-Identifier: Apache-2.0
#
# curl, the Python client and the Node client against steer up, certificates
# verified. Needs curl, Node with npm, and python3 with the package kubernetes
# (Debian: python3-kubernetes); PYTHON names another interpreter.
set -euo pipefail
cd "$(dirname "$0")"

work=$(mktemp -d)
trap 'kill "$steer" 2>/dev/null || true; rm -rf "$work"' EXIT
(cd ../../../.. && go build -o "$work/steer" ./cmd/steer)
"$work/steer" up --in-memory --listen 127.0.0.1:0 --kubeconfig "$work/kubeconfig" >"$work/log" 2>&1 &
steer=$!
until grep -q 'Stop it with' "$work/log"; do
	kill -0 "$steer" || { cat "$work/log"; exit 1; }
	read -rt 0.1 <> <(:) || true
done
export KUBECONFIG=$work/kubeconfig

echo "== curl"
field() { sed -n "s/^ *$1: *//p" "$KUBECONFIG"; }
field certificate-authority-data | base64 -d >"$work/ca.pem"
field client-certificate-data | base64 -d >"$work/cert.pem"
field client-key-data | base64 -d >"$work/key.pem"
server=$(field server)
curl -sSf --cacert "$work/ca.pem" "$server/version" | grep -q '"major": *"1"'
curl -sSf --cacert "$work/ca.pem" --cert "$work/cert.pem" --key "$work/key.pem" "$server/api/v1/namespaces/default" | grep -q '"name": *"default"'
if curl -sS "$server/version" 2>/dev/null; then
	echo "curl trusts a certificate of an authority that it does not know" >&2
	exit 1
fi

echo "== Python"
"${PYTHON:-/usr/bin/python3}" suite.py

echo "== Node"
cp package.json suite.mjs "$work"
(cd "$work" && npm install --no-audit --no-fund --silent && node suite.mjs)
