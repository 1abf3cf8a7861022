/** Buttons that send webhooks: one for each registration with `triggerMode: manual` whose filter matches the prospect. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { answer, api } from "../api/client.ts";
import { Button } from "../ui/button.tsx";
import { notifyDone, notifyFailed } from "../ui/notices.tsx";

export function ActionButtons({ prospectId: id }: { prospectId: number }) {
  const actions = useQuery({
    queryKey: ["prospects", "actions", id],
    queryFn: () => answer(api.GET("/api/prospects/{id}/actions", { params: { path: { id } } })),
  });
  const trigger = useMutation({
    mutationFn: (registrationId: number) =>
      answer(api.POST("/api/prospects/{id}/actions/{registrationId}", { params: { path: { id, registrationId } } })),
    onSuccess: () => notifyDone("The webhook will be sent."),
    onError: notifyFailed,
  });
  if (actions.data === undefined || actions.data.length === 0) return null;
  return (
    <div className="row">
      {actions.data.map(({ registrationId, label }) => (
        <Button key={registrationId} disabled={trigger.isPending} onClick={() => trigger.mutate(registrationId)}>
          {label}
        </Button>
      ))}
    </div>
  );
}
