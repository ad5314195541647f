# SPDX-License-Identifier: Apache-2.0
"""ClickHouse servers on loopback, in folders of their own, and a proxy that fails on purpose."""

import http.client
import pathlib
import socket
import subprocess
import threading
import time
import urllib.parse

PATIENCE = 120  # seconds; a busy machine takes long, a broken one for ever


def free_ports(count):
    taken = [socket.socket() for _ in range(count)]
    for one in taken:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return ports


class Refused(Exception):
    """What the server says."""


class Shard:
    """One server. `cluster`: the ports by which all shards reach each other."""

    def __init__(self, folder, port, own, cluster):
        self.folder, self.port, self.process = folder, port, None
        folder.mkdir(parents=True)
        shards = "".join(f"<shard><replica><host>127.0.0.1</host><port>{each}</port></replica></shard>" for each in cluster)
        (folder / "users.xml").write_text(
            "<yandex><profiles><default/></profiles><quotas><default/></quotas><users>"
            "<default><password/><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default>"
            "<locked><password>secret</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></locked>"
            "</users></yandex>")
        (folder / "config.xml").write_text(
            f"<yandex><logger><level>warning</level><console>1</console></logger><listen_host>127.0.0.1</listen_host>"
            f"<http_port>{port}</http_port><tcp_port>{own}</tcp_port><path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path>"
            "<users_config>users.xml</users_config><default_profile>default</default_profile><default_database>default</default_database>"
            f"<mark_cache_size>67108864</mark_cache_size><remote_servers><plumb>{shards}</plumb></remote_servers></yandex>")

    def start(self):
        self.log = open(self.folder / "log", "a")
        self.process = subprocess.Popen(["clickhouse-server", f"--config-file={self.folder}/config.xml"], cwd=self.folder,
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self.ask("select 1", database="default")
                return
            except (OSError, http.client.HTTPException):
                assert self.process.poll() is None, f"the server ended: {(self.folder / 'log').read_text()[-500:]}"
                assert time.monotonic() < end, "the server does not answer"
                time.sleep(0.05)  # between two looks

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.log.close()
            self.process = None

    def ask(self, statement, database="plumb"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("POST", "/?" + urllib.parse.urlencode({"database": database}), statement.encode())
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status != 200 or text.startswith("Code: "):
            raise Refused(text)
        return text

    def rows(self, statement, **more):
        return [line.split("\t") for line in self.ask(statement, **more).splitlines()]

    def run_file(self, path):
        text = "\n".join(line for line in pathlib.Path(path).read_text().splitlines() if not line.startswith("--"))
        for statement in text.split(";\n"):
            if statement.strip(" \n;"):
                self.ask(statement.rstrip(" \n;"))


class Proxy:
    """Between plumb and a server: passes requests on, one at a time, and does harm where it is told.

    cut_up, cut_down: after so many bytes of all connections both sides are cut off.
    at: number of a request, counted from 0; then harm() is called
        when = "body": half of the request is passed on; "answer": the server has answered, and the client was not told; "told": the client was told.
        Nothing more is passed on, but the answer that was told."""

    def __init__(self, port, cut_up=None, cut_down=None, at=None, when=None, harm=None):
        self.to, self.cut_up, self.cut_down, self.at, self.when, self.harm = port, cut_up, cut_down, at, when, harm
        self.up = self.down = self.requests = 0
        self.bodies = []  # as they were passed on, with their heads
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(PATIENCE)

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client:
                client.settimeout(PATIENCE)
                try:
                    self.pass_on(client)
                except OSError:  # either side is gone, which is what is tried here
                    pass
            self.requests += 1

    @staticmethod
    def whole(client):
        data = b""
        while b"\r\n\r\n" not in data:
            got = client.recv(65536)
            if not got:
                return data
            data += got
        head = data[:data.index(b"\r\n\r\n") + 4].decode()
        length = next(int(line.split(":")[1]) for line in head.split("\r\n") if line.lower().startswith("content-length"))
        while len(data) < len(head) + length:
            got = client.recv(1 << 20)
            if not got:
                return data
            data += got
        return data

    def allowed(self, data, so_far, cut):
        return data if cut is None else data[:max(0, cut - so_far)]

    def pass_on(self, client):
        request = self.whole(client)
        self.bodies.append(request)
        mine = self.requests == self.at
        with socket.create_connection(("127.0.0.1", self.to), timeout=PATIENCE) as server:
            if mine and self.when == "body":
                server.sendall(request[:len(request) // 2])
                self.harm()
                return
            part = self.allowed(request, self.up, self.cut_up)
            self.up += len(request)
            server.sendall(part)
            if len(part) < len(request):
                server.shutdown(socket.SHUT_WR)
                while server.recv(65536):  # until it has dealt with it; what it says is not passed on
                    pass
                return
            answer = b""
            while got := server.recv(65536):
                answer += got
            if mine and self.when == "answer":
                self.harm()
                return
            part = self.allowed(answer, self.down, self.cut_down)
            self.down += len(answer)
            client.sendall(part)
        client.shutdown(socket.SHUT_WR)
        if mine:
            self.harm()
