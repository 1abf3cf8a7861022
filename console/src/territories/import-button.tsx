/** Creates territories from a GeoJSON file. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import { answer, api } from "../api/client.ts";
import { Button } from "../ui/button.tsx";
import { notifyDone, notifyFailed } from "../ui/notices.tsx";
import { amount } from "../ui/text.ts";

export function ImportButton() {
  const queries = useQueryClient();
  const input = useRef<HTMLInputElement>(null);
  const send = useMutation({
    mutationFn: async (file: File) => {
      const features = featuresIn(await file.text());
      return answer(api.POST("/api/territories/import", { body: { type: "FeatureCollection", features } }));
    },
    onSuccess: ({ created, skipped, failed, results }) => {
      const faults = results.flatMap(({ index, detail }) =>
        detail === null ? [] : [`Feature ${index + 1}: ${detail}`],
      );
      const counts = `${amount(created, "territory", "territories")} created, ${skipped} skipped, ${failed} failed.`;
      notifyDone([counts, ...faults].join(" "));
      return queries.invalidateQueries({ queryKey: ["territories"] });
    },
    onError: notifyFailed,
  });
  return (
    <>
      <Button disabled={send.isPending} onClick={() => input.current?.click()}>
        Import GeoJSON
      </Button>
      <input
        ref={input}
        type="file"
        accept=".json,.geojson,application/geo+json"
        aria-label="GeoJSON file"
        hidden
        onChange={({ target }) => {
          const [file] = target.files ?? [];
          if (file !== undefined) send.mutate(file);
          target.value = "";
        }}
      />
    </>
  );
}

function featuresIn(text: string): unknown[] {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && "features" in value && Array.isArray(value.features)) {
      return value.features;
    }
  } catch {
    // A file that is not JSON leads to the same error message as JSON of another format.
  }
  throw new Error("This file is not a GeoJSON FeatureCollection.");
}
