/** A DNS server on loopback that uses UDP. A test chooses its answers. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { isIPv6 } from "node:net";

/** `ttl` is in seconds. */
export type NameAnswer =
  | { readonly addresses: readonly string[]; readonly ttl?: number }
  | "silence"
  | "NXDOMAIN"
  | "SERVFAIL"
  | "REFUSED";

export interface NameServer {
  /** The address and port, in the form that `Resolver.setServers` accepts. */
  readonly address: string;
  /** The questions so far, for example `A x.test`. */
  readonly questions: string[];
  answer: (name: string, type: "A" | "AAAA") => NameAnswer;
  stop(): void;
}

const codes = { NXDOMAIN: 3, SERVFAIL: 2, REFUSED: 5 } as const;
const AAAA = 28;
const HEADER_BYTES = 12;

export async function startNameServer(): Promise<NameServer> {
  const socket = createSocket("udp4");
  const questions: string[] = [];
  const made: NameServer = {
    get address() {
      return `127.0.0.1:${socket.address().port}`;
    },
    questions,
    answer: () => "NXDOMAIN",
    stop: () => socket.close(),
  };
  socket.on("message", (message, peer) => {
    const { name, type, end } = questionOf(message);
    questions.push(`${type} ${name}`);
    const answer = made.answer(name, type);
    if (answer === "silence") return;
    const code = typeof answer === "string" ? codes[answer] : 0;
    const { addresses, ttl = 60 } = typeof answer === "string" ? { addresses: [] } : answer;
    const records = addresses
      .filter((address) => isIPv6(address) === (type === "AAAA"))
      .map((address) => recordOf(address, type, ttl));
    const head = Buffer.alloc(HEADER_BYTES);
    message.copy(head, 0, 0, 2);
    head.writeUInt16BE(0x8180 | code, 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(records.length, 6);
    const reply = Buffer.concat([head, message.subarray(HEADER_BYTES, end), ...records]);
    socket.send(reply, peer.port, peer.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return made;
}

function questionOf(message: Buffer): { name: string; type: "A" | "AAAA"; end: number } {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
    labels.push(message.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  const type = message.readUInt16BE(at + 1) === AAAA ? "AAAA" : "A";
  return { name: labels.join(".").toLowerCase(), type, end: at + 5 };
}

/** Encodes a DNS record. Instead of the host name, the record contains a pointer to the name in the question. */
function recordOf(address: string, type: "A" | "AAAA", ttl: number): Buffer {
  const data = type === "A" ? Buffer.from(address.split(".").map(Number)) : v6(address);
  const head = Buffer.alloc(HEADER_BYTES);
  head.writeUInt16BE(0xc000 | HEADER_BYTES, 0);
  head.writeUInt16BE(type === "A" ? 1 : AAAA, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(ttl, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

/** Encodes an IPv6 address. The text may contain `::` once, and must not contain an IPv4 address. */
function v6(address: string): Buffer {
  const [before = "", after] = address.split("::");
  const groups = (part: string): number[] =>
    part === "" ? [] : part.split(":").map((group) => Number.parseInt(group, 16));
  const [first, last] = [groups(before), groups(after ?? "")];
  const all = [...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last];
  return Buffer.concat(all.map((group) => Buffer.from([group >> 8, group & 0xff])));
}
