/** Shows code, in four languages, that verifies the signature of a webhook request. */
import { useState } from "react";
import { Button } from "../ui/button.tsx";
import { Panel } from "../ui/page.tsx";
import style from "./webhooks.module.css";

const examples = {
  TypeScript: `import { createHmac, timingSafeEqual } from "node:crypto";

function isGenuine(rawBody: Buffer, signature: string, secretKey: string): boolean {
  const expected = createHmac("sha256", secretKey).update(rawBody).digest();
  const received = Buffer.from(signature, "hex");
  return received.length === expected.length && timingSafeEqual(received, expected);
}`,
  Python: `import hashlib, hmac

def is_genuine(raw_body: bytes, signature: str, secret_key: str) -> bool:
    expected = hmac.new(secret_key.encode(), raw_body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, signature)`,
  Go: `func isGenuine(rawBody []byte, signature, secretKey string) bool {
	mac := hmac.New(sha256.New, []byte(secretKey))
	mac.Write(rawBody)
	received, err := hex.DecodeString(signature)
	return err == nil && hmac.Equal(received, mac.Sum(nil))
}`,
  Ruby: `require "openssl"

def genuine?(raw_body, signature, secret_key)
  expected = OpenSSL::HMAC.hexdigest("SHA256", secret_key, raw_body)
  OpenSSL.secure_compare(expected, signature)
end`,
} as const;

type Language = keyof typeof examples;
const languages = ["TypeScript", "Python", "Go", "Ruby"] as const satisfies readonly Language[];

export function SignatureHelp() {
  const [language, setLanguage] = useState<Language>("TypeScript");
  return (
    <Panel title="Check the signature">
      <p>
        The header <code>X-Service-Signature</code> is the HMAC-SHA256 of the raw body with the secret, in hex. During a
        change of the secret, <code>X-Service-Signature-Previous</code> is the one of the old secret.
      </p>
      <div className="row">
        {languages.map((one) => (
          <Button key={one} aria-pressed={one === language} onClick={() => setLanguage(one)}>
            {one}
          </Button>
        ))}
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls a long example */}
      <pre className={style.code} tabIndex={0}>
        {examples[language]}
      </pre>
    </Panel>
  );
}
