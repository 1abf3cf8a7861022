/** Tests which URLs of receivers each policy allows. The policy `public` must refuse a private address in every spelling. */
import { describe, expect, test } from "vitest";
import { addressFault, parseTarget } from "#shared/outbound/public-url.ts";

const refused = [
  "http://example.com/",
  "ftp://example.com/",
  "file:///etc/passwd",
  "javascript:alert(1)",
  "https://user@example.com/",
  "https://user:secret@example.com/",
  "https://127.0.0.1/",
  "https://127.1/",
  "https://0x7f.1/",
  "https://0177.0.0.1/",
  "https://2130706433/",
  "https://127.0.0.1./",
  "https://１２７.０.０.１/",
  "https://0/",
  "https://0.0.0.0/",
  "https://10.0.0.1/",
  "https://172.16.0.1/",
  "https://172.31.255.255/",
  "https://192.168.1.1/",
  "https://169.254.169.254/latest/meta-data/",
  "https://100.64.0.1/",
  "https://100.100.100.200/",
  "https://192.0.0.1/",
  "https://192.0.2.1/",
  "https://198.18.0.1/",
  "https://198.51.100.1/",
  "https://203.0.113.1/",
  "https://224.0.0.1/",
  "https://240.0.0.1/",
  "https://255.255.255.255/",
  "https://[::1]/",
  "https://[::]/",
  "https://[::ffff:127.0.0.1]/",
  "https://[::ffff:7f00:1]/",
  "https://[::127.0.0.1]/",
  "https://[64:ff9b::7f00:1]/",
  "https://[64:ff9b:1::1]/",
  "https://[2002:7f00:1::]/",
  "https://[2001::1]/",
  "https://[2001:db8::1]/",
  "https://[fe80::1]/",
  "https://[fec0::1]/",
  "https://[fc00::1]/",
  "https://[fd00:ec2::254]/",
  "https://[ff02::1]/",
];

describe("the policy `public`", () => {
  test.each(refused)("refuses %s", (url) => {
    expect(() => parseTarget(url, "public")).toThrow();
  });

  test.each([
    "https://example.com/hook?x=1",
    "https://93.184.216.34/",
    "https://[2606:4700:4700::1111]/",
    "https://example.com:8443/",
    "https://localhost.example.com/",
    "https://mylocal/",
    "https://internal.example.com./",
  ])("allows %s", (url) => {
    expect(parseTarget(url, "public").href).toContain("https://");
  });
});

describe("the policy `local`", () => {
  test.each([
    "http://127.0.0.1:9/",
    "http://localhost:9/",
    "http://a.localhost.:9/",
    "http://db.internal:9/",
    "http://[::1]:9/",
    "http://[::ffff:127.0.0.1]/",
  ])("allows %s", (url) => {
    expect(parseTarget(url, "local")).toBeDefined();
  });

  test.each(["http://10.0.0.1/", "http://169.254.169.254/", "http://0.0.0.0/", "ftp://127.0.0.1/"])(
    "refuses %s",
    (url) => {
      expect(() => parseTarget(url, "local")).toThrow();
    },
  );
});

test("the zone of an address is ignored", () => {
  expect(addressFault("fe80::1%eth0", "public")).toBeDefined();
  expect(addressFault("not an address", "public")).toBeDefined();
});
